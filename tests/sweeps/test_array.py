"""SLURM through submitit, with its local executor in the place of the cluster."""

import os
import shutil
import signal
import time

import pytest

from looped.cli import main
from looped.errors import UserError
from looped.record import read_checkpoint, read_run_file
from looped.sweeps.array import array_executor, submit_array
from looped.sweeps.failures import failure_of, record_failure
from looped.sweeps.grid import read_grid
from looped.sweeps.locks import take_lock
from looped.sweeps.plan import plan_sweep
from looped.sweeps.status import status_of

pytest.importorskip("submitit")


def _plan(grid):
    return plan_sweep(read_grid(grid))


def _submit(runs, tmp_path, **options):
    options = {"timeout_min": 5} | options
    out = tmp_path / "sweep"
    executor = array_executor(runs[0].base, out=out, jobs=2, options=options, cluster="local")
    return submit_array(executor, runs)


@pytest.mark.slow
def test_tasks_train_their_runs(write_grid, tmp_path):
    """One run is trained; one that another launcher holds is left to it; one fails, recorded."""
    good, held, failing, _ = _plan(write_grid())
    lock = take_lock(held.directory)
    failing.directory.write_text("in the way")
    tasks = _submit([good, held, failing], tmp_path)
    assert tasks[0].result() == "trained"
    assert tasks[1].result() == "taken"
    error = tasks[2].exception()
    lock.close()
    assert status_of(good.directory) == "complete"
    assert status_of(held.directory) == "planned"
    assert "TaskFailed" in str(error)
    assert status_of(failing.directory) == "failed"
    assert failure_of(failing.directory) in str(error)


@pytest.mark.slow
def test_a_task_out_of_time_is_requeued_and_resumes(write_grid, tmp_path):
    """On the signal: a checkpoint of its own, a requeue, and the run completes from that step."""
    grid = write_grid({"checkpoints": {"every_n_steps": 10**6}}, tokens={"3.2e4": [8]})
    (run, *_) = _plan(grid)
    (task,) = _submit([run], tmp_path)
    deadline = time.monotonic() + 120
    while not (run.directory / "run.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    (task_pid,) = _children(task._process.pid)
    os.kill(task_pid, signal.SIGUSR2)
    assert task.result() == "trained"
    record = read_run_file(run.directory / "run.json")
    assert record.status == "complete"
    assert record.progress["tokens"] == 32_000
    log = (tmp_path / "sweep" / "logs" / f"{run.name}.log").read_text()
    assert "stopped by SIGTERM at step" in log
    assert log.count("Plan: 500 steps") == 2
    configurations = {path.name for path in run.directory.glob("config*.yaml")}
    assert len(configurations) == 2  # the second one carries the step it was resumed from
    assert read_checkpoint(run.directory / "checkpoints" / "last.ckpt").status == "complete"


def _children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as stream:
        return [int(child) for child in stream.read().split()]


@pytest.mark.skipif(shutil.which("srun") is not None, reason="this machine has SLURM")
def test_without_a_cluster_it_says_so(write_grid, tmp_path, capsys):
    """One line and status 2, not a traceback of submitit, and no directory made."""
    assert main(["sweep", "run", str(write_grid()), "--launcher", "slurm"]) == 2
    error = capsys.readouterr().err
    assert "srun" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "sweep").exists()


def test_unknown_options_are_refused(write_grid, tmp_path):
    """Before anything is submitted."""
    runs = _plan(write_grid())
    with pytest.raises(UserError, match="partitoin"):
        _submit(runs, tmp_path, slurm_partitoin="gpu")


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """Puts an `sbatch` of these lines, beside an `srun`, on the PATH; no run is looked at first."""
    monkeypatch.setattr("looped.sweeps.check.refuse_mistakes", lambda *_, **__: None)

    def with_sbatch(*lines):
        folder = tmp_path / "bin"
        folder.mkdir()
        for name in ("srun", "sbatch"):
            (folder / name).write_text("\n".join(["#!/bin/sh", *lines]))
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)

    return with_sbatch


@pytest.mark.parametrize("tokens", [{"6.4e2": [8, 16]}, {"6.4e2": {2: [8]}}], ids=["array", "one"])
def test_a_refusal_of_sbatch_is_one_line_and_leaves_nothing(
    cluster, write_grid, tmp_path, capsys, tokens
):
    """Neither submitit's files nor the sweep's own; a failure that was to be retried is kept."""
    cluster("echo 'sbatch: error: invalid account' >&2", "exit 1")
    grid = write_grid(tokens=tokens, out=str(tmp_path / "deep" / "sweep"))
    command = ["sweep", "run", str(grid), "--launcher", "slurm", "--retry"]
    assert main(command) == 2
    output = capsys.readouterr()
    assert "nothing was submitted: sbatch: error: invalid account" in output.err
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert not (tmp_path / "deep").exists()
    failed = _plan(grid)[0]
    record_failure(failed.directory, "x")
    assert main(command) == 2
    assert failure_of(failed.directory) == "x"


def test_runs_submitted_again_are_named(cluster, write_grid, tmp_path, capsys):
    """The locks make a second array harmless; that it is one must not go unsaid."""
    cluster("echo Submitted batch job 17")
    grid = write_grid()
    said = []
    for _ in range(2):
        assert main(["sweep", "run", str(grid), "--launcher", "slurm"]) == 0
        said.append(capsys.readouterr().out)
    assert "submitted 4 runs as array 17" in said[0]
    assert "submitted before" not in said[0]
    assert "1 array submitted before" in said[1]
    assert (tmp_path / "sweep" / "sweep.yaml").exists()


@pytest.mark.parametrize("option", ["nodes=abc", "slurm_partitoin=gpu"])
def test_options_that_submitit_refuses(cluster, write_grid, tmp_path, capsys, option):
    cluster("exit 1")
    command = ["sweep", "run", str(write_grid()), "--launcher", "slurm", "--slurm", option]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert option.split("=")[0] in error
    assert error.count("\n") == 1
    assert not (tmp_path / "sweep").exists()
