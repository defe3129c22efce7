"""Stopped runs go on as if nothing had happened, or say what differs."""

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from looped.cli import main
from looped.record import read_checkpoint, read_run_file
from tests.conftest import SEQ_LEN
from tests.training.conftest import assert_equal, fit, state, wait_for


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
    slow.write_text("trainer: {callbacks: [{class_path: tests.training.conftest.Sleep}]}\n")
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
        stdout=subprocess.PIPE,
        text=True,
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
        assert (
            f"in {killed}; go on: looped fit --config={killed}/config.yaml" in process.stdout.read()
        )
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
    slow.write_text("trainer: {callbacks: [{class_path: tests.training.conftest.Sleep}]}\n")
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


def test_a_complete_run_is_left_as_it_is(config, tmp_path, capsys):
    """Resumed once more it would set its training curve aside and begin an empty one."""
    assert fit(config) == 0
    run = tmp_path / "run"
    before = {path: path.read_bytes() for path in run.glob("*") if path.is_file()}
    del before[run / "run.json"]  # written again, with the wall time of this start
    capsys.readouterr()
    assert fit(config, "--ckpt_path=last") == 0
    assert "100% of the plan" in capsys.readouterr().out
    after = {path: path.read_bytes() for path in run.glob("*") if path.is_file()}
    del after[run / "run.json"]
    assert after == before
    assert read_run_file(run / "run.json").status == "complete"
