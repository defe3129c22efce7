"""`looped fit` and its siblings from the command line, on the tiny corpus."""

import csv
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest
import torch
import yaml
from lightning.pytorch import Callback

from looped import training
from looped.cli import main
from looped.record import LOCK_FILE, read_checkpoint, read_run_file
from looped.run_directory import _sole_writer
from tests.conftest import SEQ_LEN

VOCAB = 300


class Sleep(Callback):
    """Makes each batch take a twentieth of a second."""

    def on_train_batch_end(self, *_) -> None:
        time.sleep(0.05)


class Spoil(Callback):
    """Makes the loss NaN from the fourth step on."""

    def on_train_batch_end(self, trainer, pl_module, *_) -> None:
        if trainer.global_step == 3:
            torch.nn.init.constant_(pl_module.network.norm_final.weight, float("nan"))


@pytest.fixture
def config(tmp_path, prepared) -> Path:
    """A complete configuration of a run of 20 steps in tmp_path / run."""
    content = {
        "run": {"dir": str(tmp_path / "run")},
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
        },
        "data": {"data_dir": str(prepared), "batch_size": 4},
        "trainer": {"accelerator": "cpu", "enable_progress_bar": False, "log_every_n_steps": 5},
        "checkpoints": {"every_n_steps": 7},
    }
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def fit(config: Path, *arguments: str) -> int:
    return main(["fit", f"--config={config}", *arguments])


def tree(directory: Path) -> list[str]:
    return sorted(str(p.relative_to(directory)) for p in directory.rglob("*"))


def test_a_run_leaves_what_the_design_says(config, tmp_path, prepared):
    """config.yaml, checkpoints with the record, run.json, metrics.csv; and nothing else of ours."""
    assert fit(config) == 0
    run = tmp_path / "run"
    assert {"config.yaml", "run.json", "metrics.csv", "checkpoints/last.ckpt"} <= set(tree(run))
    record = read_run_file(run / "run.json")
    assert record.status == "complete"
    assert record.progress["tokens"] == 20 * 4 * SEQ_LEN
    in_checkpoint = read_checkpoint(run / "checkpoints" / "last.ckpt")
    assert in_checkpoint.validation == record.validation
    assert record.data["fingerprint"] == json.loads((prepared / "data.json").read_text()).get(
        "fingerprint", record.data["fingerprint"]
    )
    assert torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)["global_step"] == 20


def test_the_saved_configuration_trains_the_same_run(config, tmp_path):
    """config.yaml alone reproduces the run bit for bit, every default written out."""
    assert fit(config) == 0
    saved = tmp_path / "run" / "config.yaml"
    assert fit(saved, f"--run.dir={tmp_path / 'again'}") == 0
    losses = [
        read_run_file(tmp_path / name / "run.json").validation[-1].loss for name in ("run", "again")
    ]
    assert losses[0] == losses[1]


def test_measuring_callbacks_survive_a_second_configuration(config, tmp_path):
    """A later --config that replaces the list of callbacks must not lose the measurement."""
    second = tmp_path / "second.yaml"
    second.write_text(
        "trainer: {callbacks: [{class_path: lightning.pytorch.callbacks.LearningRateMonitor}]}\n"
    )
    assert fit(config, f"--config={second}", "--horizon.steps=18") == 0
    record = read_run_file(tmp_path / "run" / "run.json")
    assert record.status == "complete"
    rows = list(csv.DictReader((tmp_path / "run" / "metrics.csv").open()))
    counted = [float(row["tokens"]) for row in rows if row["tokens"]]
    assert counted[-1] == record.progress["tokens"]  # the last row is not a copy of an earlier one
    assert "lr-MuonH/matrices" in (tmp_path / "run" / "metrics.csv").read_text()


def test_numbers_may_be_written_with_exponents(config, tmp_path):
    """1e3 in YAML is text to a YAML 1.1 reader; here it is a number."""
    text = config.read_text().replace("steps: 20", "tokens: 1e3")
    config.write_text(text)
    assert fit(config, "--horizon.tokens", "1.28e3") == 0
    assert read_run_file(tmp_path / "run" / "run.json").progress["tokens"] == 1280


def test_constructor_arguments_from_the_command_line(config, tmp_path):
    """Recurrences, truncation depth and streams reach the network."""
    arguments = ("--model.recurrences=4", "--model.truncation_depth=2", "--model.streams=2")
    assert fit(config, *arguments, "--horizon.steps=2") == 0
    model = read_run_file(tmp_path / "run" / "run.json").model
    assert (model["recurrences"], model["truncation_depth"], model["streams"]) == (4, 2, 2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model.width=17"], "width 17 is not divisible by num_heads 2"),
        (["--model.recurrences=0"], "recurrences 0"),
        (["--model.truncation_depth=0"], "truncation_depth 0"),
        (["--model.truncation_depth=4"], "truncation_depth 4 is above recurrences 3"),
        (["--model.streams=0"], "streams 0"),
        (["--model.streams=2", "--model.injection=none"], "streams 2 together with injection none"),
        (["--model.recurences=2"], "did you mean model.recurrences?"),
        (["--modle.width=2"], "did you mean model.width?"),
        (["--model.width=wide"], "model.width: got wide, expected a whole number"),
        (["--data.data_dir=nowhere"], "nowhere"),
        (["--model.vocab_size=301"], "vocab_size 301"),
        (["--model.seq_len=8"], "seq_len 8"),
        (["--horizon.steps=0"], "horizon.steps 0"),
        (["--horizon.tokens=1000"], "horizon.tokens and horizon.steps"),
        (["--horizon.steps=null"], "got none"),
        (["--data.batch_size=100000"], "100000"),
        (["--ckpt_path=last"], "does not exist"),
        (["--config=nowhere.yaml"], "nowhere.yaml"),
        (["--trainer.accelerator=abacus"], "abacus"),
        (["--trainer.devices=0"], "devices"),
        (["--trainer.fast_dev_run=true"], "--horizon.steps 5"),
        (["--trainer.accumulate_grad_batches=0"], "accumulated"),
        (["--seed_everything=-5"], "seed_everything"),
        (["--divergence.check_every_n_steps=0"], "divergence.check_every_n_steps 0"),
        (["--model.logit_softcap=.inf"], "logit_softcap inf"),
        (["--model.embed_lr=.inf"], "embed_lr inf"),
        (["--run.dir="], "run.dir is empty"),
        (["--run.dir=/proc/nope"], "/proc/nope cannot be written"),
        (
            ["--trainer.strategy={class_path: lightning.pytorch.strategies.ModelParallelStrategy}"],
            "trainer.strategy ModelParallelStrategy is not supported",
        ),
        (["--compute.convention=fast"], "compute.convention: got fast, expected paper, causal"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_mistakes_are_one_line_and_leave_nothing(config, tmp_path, capsys, arguments, words):
    """What is wrong and where; status 2, no traceback, no run directory."""
    assert fit(config, *arguments) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.startswith("looped fit: error: ")
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_files_in_the_wrong_place(config, tmp_path, capsys):
    """Binary garbage as configuration, a file as run directory: one line each."""
    garbage = tmp_path / "garbage.yaml"
    garbage.write_bytes(bytes(range(256)))
    for argument, words in (
        (f"--config={garbage}", "not a text file"),
        (f"--run.dir={garbage}", "is a file"),
    ):
        assert fit(config, argument) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1


def test_two_processes_do_not_train_into_one_directory(config, tmp_path, capsys):
    """Both would write the same curve and checkpoints; the second is refused."""
    (tmp_path / "run").mkdir()
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import time; from pathlib import Path; "
            "from looped.run_directory import _sole_writer; "
            f"lock = _sole_writer(Path({str(tmp_path / 'run')!r})); print(1, flush=True); "
            "time.sleep(100)",
        ],
        stdout=subprocess.PIPE,
    )
    holder.stdout.readline()
    assert fit(config) == 2
    assert "another process is training" in capsys.readouterr().err
    holder.kill()
    holder.wait()
    assert fit(config) == 0


def test_a_look_at_the_lock_does_not_keep_a_run_from_starting(tmp_path):
    """`looped sweep status` holds the lock for an instant to see whether somebody trains."""
    with (tmp_path / LOCK_FILE).open("w") as look:
        fcntl.flock(look, fcntl.LOCK_SH)
        timer = threading.Timer(0.2, fcntl.flock, (look, fcntl.LOCK_UN))
        timer.start()
        _sole_writer(tmp_path).close()
        timer.join()


def test_a_checkpoint_of_another_model_is_named(config, tmp_path, capsys):
    """With other heads it would give a loss of nothing; with another width, a traceback."""
    assert fit(config, "--trainer.max_steps=7") == 0
    capsys.readouterr()
    other = ("--ckpt_path=last", "--model.num_heads=4")
    for command, arguments, words in (
        ("validate", other, "num_heads 4 instead of 2"),
        ("validate", ("--ckpt_path=last", "--model.recurrences=5"), "--model.eval_recurrences"),
        ("fit", ("--ckpt_path=last", "--model.width=32"), "width 32 instead of 16"),
        ("validate", (), "name the checkpoint to evaluate"),
    ):
        assert main([command, f"--config={config}", *arguments]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1


def test_a_checkpoint_with_damaged_tensors_is_refused(config, tmp_path, capsys):
    """The record reads well, the weights would not."""
    assert fit(config, "--trainer.max_steps=7") == 0
    path = (tmp_path / "run" / "checkpoints" / "last.ckpt").resolve()
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        tensor = next(i for i in archive.infolist() if "/data/" in i.filename and i.file_size > 99)
    content[tensor.header_offset + len(tensor.filename) + 150] ^= 0xFF
    path.write_bytes(content)
    capsys.readouterr()
    assert fit(config, "--ckpt_path=last") == 2
    assert "damaged at" in capsys.readouterr().err


def test_an_unknown_key_in_the_yaml_offers_the_nearest(config, tmp_path, capsys):
    config.write_text(config.read_text().replace("recurrences:", "recurences:"))
    assert fit(config) == 2
    assert "did you mean model.recurrences?" in capsys.readouterr().err


def test_a_used_directory_is_refused(config, tmp_path, capsys):
    """A new run where one lies is refused with the way on; what lies there is untouched."""
    assert fit(config) == 0
    before = {p: (tmp_path / "run" / p).stat().st_mtime_ns for p in tree(tmp_path / "run")}
    assert fit(config) == 2
    assert "--ckpt_path last" in capsys.readouterr().err
    assert before == {p: (tmp_path / "run" / p).stat().st_mtime_ns for p in before}
    assert tree(tmp_path / "run") == sorted(before)


def state(path: Path) -> dict:
    checkpoint = torch.load(path, weights_only=True)
    keep = ("state_dict", "optimizer_states", "lr_schedulers", "global_step")
    return {name: checkpoint[name] for name in keep}


def assert_equal(a, b) -> None:
    """Equal to the last bit, through nested containers."""
    if isinstance(a, torch.Tensor):
        assert torch.equal(a, b)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_equal(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_equal(x, y)
    else:
        assert a == b


def wait_for(path: Path, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, "the run ended before it could be interrupted"
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kill_at", "workers", "accumulate", "signum"),
    [
        (9, 0, 1, signal.SIGKILL),
        (23, 2, 1, signal.SIGKILL),
        (16, 0, 3, signal.SIGKILL),
        (18, 0, 2, signal.SIGTERM),
        (10, 2, 1, signal.SIGUSR1),
    ],
)
def test_an_interrupted_run_resumes_bit_for_bit(
    config, tmp_path, kill_at, workers, accumulate, signum
):
    """Weights, optimizer, data order, counters and loss are those of an uninterrupted run."""
    arguments = [
        f"--config={config}",
        "--horizon.steps=40",
        f"--data.num_workers={workers}",
        f"--trainer.accumulate_grad_batches={accumulate}",
        "--trainer.log_every_n_steps=1",
    ]
    assert main(["fit", *arguments, f"--run.dir={tmp_path / 'straight'}"]) == 0
    killed = tmp_path / "killed"
    slow = tmp_path / "slow.yaml"  # gives the test time to aim
    slow.write_text("trainer: {callbacks: [{class_path: tests.test_training.Sleep}]}\n")
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "looped",
            "fit",
            *arguments,
            f"--config={slow}",
            f"--run.dir={killed}",
        ],
        start_new_session=True,
    )
    wait_for(killed / "checkpoints" / f"step={kill_at // 7 * 7:08d}.ckpt", process)
    time.sleep(0.05 * accumulate * (kill_at % 7))
    if signum == signal.SIGKILL:
        os.killpg(process.pid, signum)
        process.wait()
        assert read_run_file(killed / "run.json").status == "running"
    else:
        process.send_signal(signum)
        assert process.wait() == 128 + signum
        record = read_run_file(killed / "run.json")
        assert record.status == "stopped"
        written = read_checkpoint(killed / "checkpoints" / "last.ckpt")
        assert written.progress == record.progress  # the step it was in is not lost
    assert main(["fit", *arguments, f"--run.dir={killed}", "--ckpt_path=last"]) == 0
    last = Path("checkpoints") / "last.ckpt"
    assert_equal(state(killed / last), state(tmp_path / "straight" / last))
    a, b = (read_run_file(d / "run.json") for d in (killed, tmp_path / "straight"))
    assert (a.status, a.validation, a.flops, a.progress) == (
        "complete",
        b.validation,
        b.flops,
        b.progress,
    )
    assert len(list(killed.glob("config*.yaml"))) == 2
    assert len(list(killed.glob("metrics*.csv"))) == 2


@pytest.mark.slow
def test_a_job_that_slurm_requeues_goes_on_by_itself(config, tmp_path, monkeypatch):
    """SIGUSR1 under SLURM: Lightning saves and requeues; the same command then resumes."""
    commands = tmp_path / "bin"
    commands.mkdir()
    asked = tmp_path / "asked"
    (commands / "scontrol").write_text(f"#!/bin/sh\necho $* > {asked}\n")
    (commands / "scontrol").chmod(0o755)
    slurm = {"JOB_ID": "7", "NTASKS": "1", "NTASKS_PER_NODE": "1", "PROCID": "0", "LOCALID": "0"}
    slurm |= {"NODEID": "0", "NODELIST": "localhost", "JOB_NAME": "looped", "STEP_NODELIST": "a"}
    environment = os.environ | {f"SLURM_{name}": value for name, value in slurm.items()}
    environment["PATH"] = f"{commands}:{environment['PATH']}"
    slow = tmp_path / "slow.yaml"
    slow.write_text("trainer: {callbacks: [{class_path: tests.test_training.Sleep}]}\n")
    command = [sys.executable, "-m", "looped", "fit", f"--config={config}", f"--config={slow}"]
    process = subprocess.Popen(command, env=environment)
    run = tmp_path / "run"
    wait_for(run / "checkpoints" / "last.ckpt", process)
    process.send_signal(signal.SIGUSR1)
    wait_for(asked, process)
    process.kill()  # as SLURM does when it takes the job back into the queue
    process.wait()
    assert asked.read_text().split() == ["requeue", "7"]
    step = read_checkpoint(run / "hpc_ckpt_1.ckpt").progress["step"]
    assert step >= 7
    assert subprocess.run(command, env=environment).returncode == 0
    record = read_run_file(run / "run.json")
    assert (record.status, record.progress["tokens"]) == ("complete", 20 * 4 * SEQ_LEN)
    assert (run / f"config-step={step:08d}.yaml").exists()
    assert subprocess.run(command, env=environment).returncode == 2


def test_the_checkpoint_does_not_replace_the_users_values(config, tmp_path, capsys):
    """Lightning's own CLI would take model.head_lr from the checkpoint, silently."""
    assert fit(config, "--trainer.max_steps=7") == 0
    changed = ("--ckpt_path=last", "--model.norm_lr=0.123")
    assert fit(config, *changed) == 2
    assert "model.norm_lr 0.123 instead of 0.005" in capsys.readouterr().err
    command = [sys.executable, "-m", "looped", "fit", f"--config={config}", *changed]
    done = subprocess.run([*command, "--allow-changes"], capture_output=True, text=True, check=True)
    warning = (
        "looped: warning: Resuming as another experiment: model.norm_lr 0.123 instead of 0.005"
    )
    assert warning in done.stderr.splitlines()
    assert "rank_zero_warn" not in done.stderr  # our source line, which Python puts below
    second = next((tmp_path / "run").glob("config-step*.yaml"))
    assert yaml.safe_load(second.read_text())["model"]["norm_lr"] == 0.123


def test_changed_settings_of_the_trainer_are_named(config, tmp_path, capsys, caplog):
    """Clipping makes it another experiment; a log interval is only mentioned."""
    assert fit(config, "--trainer.max_steps=7") == 0
    resume = ("--ckpt_path=last", "--trainer.gradient_clip_val=0.5")
    capsys.readouterr()
    assert fit(config, *resume) == 2
    assert "trainer.gradient_clip_val 0.5 instead of None" in capsys.readouterr().err
    assert fit(config, *resume, "--allow-changes", "--trainer.log_every_n_steps=3") == 0
    named = [record.getMessage() for record in caplog.records]
    assert "Resuming with trainer.log_every_n_steps 3 instead of 5" in named
    assert "Resuming with trainer.gradient_clip_val 0.5 instead of None" in named


def test_every_start_keeps_its_training_curve(config, tmp_path):
    """Resumed twice, a run has three curves; none takes the place of another."""
    assert fit(config, "--trainer.max_steps=6") == 0
    assert fit(config, "--ckpt_path=last", "--trainer.max_steps=12") == 0
    assert fit(config, "--ckpt_path=last") == 0
    run = tmp_path / "run"
    names = ("metrics-start=1.csv", "metrics-start=2.csv", "metrics.csv")
    last_steps = []
    for name in names:
        rows = list(csv.DictReader((run / name).open()))
        last_steps.append(max(int(row["step"]) for row in rows if row["train_loss"]))
    assert last_steps == sorted(set(last_steps))
    assert last_steps[0] < 6 <= last_steps[1] < 12 <= last_steps[2]


def test_validate_test_and_predict_read_a_checkpoint(config, tmp_path, capsys):
    """`validate` at the trained count repeats the recorded loss; at another it gives another."""
    config.write_text(
        config.read_text().replace("recurrences: 3", "recurrences: 3\n  injection: none")
    )
    assert fit(config) == 0
    capsys.readouterr()
    recorded = read_run_file(tmp_path / "run" / "run.json").validation[-1].loss
    for command in ("validate", "test", "predict"):
        assert main([command, f"--config={config}", "--ckpt_path=last"]) == 0
        out = capsys.readouterr().out
        if command != "predict":
            assert f"{recorded:.6f}"[:7] in out
    nats = torch.load(tmp_path / "run" / "token_losses.pt", weights_only=True)
    assert nats.shape[1] == SEQ_LEN
    assert nats.double().mean().item() == pytest.approx(recorded, rel=1e-6)
    before = (tmp_path / "run" / "run.json").read_bytes()
    more = ["--model.eval_recurrences=6"]
    assert main(["validate", f"--config={config}", "--ckpt_path=last", *more]) == 0
    assert f"{recorded:.6f}"[:7] not in capsys.readouterr().out
    assert (tmp_path / "run" / "run.json").read_bytes() == before


@pytest.mark.parametrize(
    ("accelerator", "gpu", "expected"),
    [("auto", True, "bf16-mixed"), ("cpu", True, "32-true"), ("auto", False, "32-true")],
)
def test_precision_follows_the_hardware(monkeypatch, accelerator, gpu, expected):
    """bfloat16 only where a GPU has it and is used."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: gpu)
    assert training._default_precision(accelerator) == expected


def test_a_diverged_run_has_its_own_exit_status(config, tmp_path, capsys):
    """A script must be able to tell a lost run from a good one."""
    spoiled = tmp_path / "spoiled.yaml"
    spoiled.write_text("trainer: {callbacks: [{class_path: tests.test_training.Spoil}]}\n")
    assert fit(config, f"--config={spoiled}") == 1
    assert read_run_file(tmp_path / "run" / "run.json").status == "diverged"
