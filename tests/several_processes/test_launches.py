"""`looped fit` started in every way that docs/multi-node.md names, on loopback."""

import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml

from looped.cli import main
from looped.record import read_run_file
from tests.conftest import SEQ_LEN
from tests.several_processes.conftest import ROOT, environment
from tests.several_processes.training import STOPPED_AT
from tests.training.conftest import VOCAB, assert_equal, state

pytestmark = pytest.mark.slow

STRATEGIES = ROOT / "configs" / "strategies"
FIT = ["-m", "looped", "fit"]


@pytest.fixture(scope="module")
def story(prepared, tmp_path_factory) -> Path:
    """Three runs of 20 steps: by one process; by two; by two, stopped and resumed.

    The second is two launches that are told their node. The third begins like a SLURM job of two
    nodes; SLURM's signal, to one of them, ends both; it goes on under torchrun and FSDP2.
    """
    out = tmp_path_factory.mktemp("launches")
    config = out / "config.yaml"
    content = {
        "horizon": {"steps": 20},
        "model": {
            "width": 16,
            "num_heads": 2,
            "prelude_layers": 1,
            "recurrent_layers": 1,
            "coda_layers": 1,
            "recurrences": 3,
            "vocab_size": VOCAB,
            "seq_len": SEQ_LEN,
            "matrix_lr": 0.05,
            "embed_lr": 5.0,
            "head_lr": 1.0,
        },
        "data": {"data_dir": str(prepared), "batch_size": 4},
        "trainer": {"accelerator": "cpu", "enable_progress_bar": False, "log_every_n_steps": 1},
        "validation": {"every_n_steps": 10},
    }
    config.write_text(yaml.safe_dump(content))
    alone = ["--data.batch_size=8", f"--run.dir={out / 'one'}"]
    assert main(["fit", f"--config={config}", *alone]) == 0

    ddp = [f"--config={config}", f"--config={STRATEGIES / 'ddp.yaml'}", "--trainer.accelerator=cpu"]
    two_nodes = [*ddp, "--trainer.devices=1", "--trainer.num_nodes=2"]
    launch_both(
        [*FIT, *two_nodes, f"--run.dir={out / 'two'}"],
        [{"NODE_RANK": str(node)} for node in (0, 1)],
    )
    stop = out / "stop.yaml"
    stop.write_text(
        "trainer: {callbacks: [{class_path: tests.several_processes.training.SignalAt, "
        f"init_args: {{step: {STOPPED_AT}, rank: 1}}}}]}}\n"
    )
    resumed = f"--run.dir={out / 'resumed'}"
    slurm = {"SLURM_NTASKS": "2", "SLURM_NNODES": "2", "SLURM_LOCALID": "0"}
    slurm |= {"SLURM_JOB_ID": "1", "SLURM_JOB_NAME": "looped", "SLURM_NTASKS_PER_NODE": "1"}
    launch_both(
        [*FIT, *two_nodes, resumed, f"--config={stop}"],
        [slurm | {"SLURM_PROCID": str(node), "SLURM_NODEID": str(node)} for node in (0, 1)],
        status=128 + signal.SIGUSR1,  # docs/multi-node.md requeues on this one
    )
    assert read_run_file(out / "resumed" / "run.json").status == "stopped"
    shutil.copy(out / "resumed" / "run.json", out / "stopped.json")
    fsdp2 = [
        f"--config={config}",
        f"--config={STRATEGIES / 'fsdp2.yaml'}",
        "--trainer.accelerator=cpu",
        "--trainer.devices=2",
    ]
    torchrun = ["-m", "torch.distributed.run", "--nproc_per_node=2", f"--master_port={free_port()}"]
    finish(start([*torchrun, *FIT, *fsdp2, resumed, "--ckpt_path=last"], {}))
    return out


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(arguments: list[str], variables: dict[str, str]) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, *arguments],
        env=environment(**variables),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen, status: int = 0) -> str:
    try:
        output, _ = process.communicate(timeout=180)
    finally:
        process.kill()
    assert process.returncode == status, output[-4000:]
    return output


def launch_both(arguments: list[str], places: list[dict[str, str]], status: int = 0) -> None:
    """Start the same command twice, as on two nodes, each knowing its place."""
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    for process in [start(arguments, meeting | place) for place in places]:
        finish(process, status)


def record(story: Path, name: str):
    return read_run_file(story / name / "run.json")


def checkpoint(story: Path, name: str) -> Path:
    return story / name / "checkpoints" / "last.ckpt"


def test_two_nodes_train_the_run_of_one_process(story):
    """Same curve, same counters, same rows in the validation."""
    alone, together = record(story, "one"), record(story, "two")
    assert (alone.status, together.status) == ("complete", "complete")
    assert together.progress == alone.progress
    assert together.flops == alone.flops
    assert len(together.validation) == 2
    for a, b in zip(alone.validation, together.validation, strict=True):
        assert (a.step, a.tokens, a.tokens_evaluated) == (b.step, b.tokens, b.tokens_evaluated)
        assert b.loss == pytest.approx(a.loss, rel=1e-6)
    assert together.validation[0].loss - together.validation[1].loss > 0.1
    weights, expected = (
        torch.load(checkpoint(story, name), weights_only=True)["state_dict"]
        for name in ("two", "one")
    )
    for name, weight in weights.items():
        assert (weight - expected[name]).norm() < 1e-4 * expected[name].norm(), name


def test_a_stopped_run_goes_on_bit_for_bit_however_it_is_started(story):
    """Weights, optimizer, counters and losses as uninterrupted, across nodes and strategies."""
    resumed, straight = record(story, "resumed"), record(story, "two")
    assert resumed.status == "complete"
    assert (resumed.progress, resumed.flops) == (straight.progress, straight.flops)
    assert resumed.validation == straight.validation
    assert read_run_file(story / "stopped.json").progress["step"] == STOPPED_AT
    a, b = (torch.load(checkpoint(story, n), weights_only=True) for n in ("resumed", "two"))
    assert_equal(a["state_dict"], b["state_dict"])
    assert_equal(in_group_order(a), in_group_order(b))
    for key in ("global_step", "lr_schedulers"):
        assert_equal(state(checkpoint(story, "resumed"))[key], b[key])


def in_group_order(saved: dict) -> list:
    """An optimizer's states as it holds them; strategies number the parameters differently."""
    (optimizer,) = saved["optimizer_states"]
    return [
        optimizer["state"][key] for group in optimizer["param_groups"] for key in group["params"]
    ]


def test_one_process_writes_for_all(story):
    """A curve or a configuration for every process would overwrite one another."""
    # the name of a file of events ends with time, host and process
    one, two = (
        sorted(path.name.split(".out.")[0] for path in (story / name).iterdir())
        for name in ("one", "two")
    )
    assert one == two
    one, two = ((story / name / "metrics.csv").read_text() for name in ("one", "two"))
    assert one.count("\n") == two.count("\n")


def test_a_mistake_ends_every_process(story, tmp_path):
    """A process that waits for one that has given up would wait for half an hour."""
    arguments = [f"--config={story / 'config.yaml'}", f"--run.dir={tmp_path / 'run'}"]
    arguments += [f"--config={STRATEGIES / 'two-processes.yaml'}", "--data.batch_size=100000"]
    output = finish(start([*FIT, *arguments], {}), status=2)
    assert "fewer than one batch of 100000 for each of 2 processes" in output
    assert "Traceback" not in output
    assert not (tmp_path / "run").exists()
