"""Sweeps that really train: reused workers, skipping, resuming, failures, kills."""

import os
import signal
import subprocess
import sys
import time

import pytest

from looped.cli import main
from looped.errors import UserError
from looped.record import read_run_file
from looped.sweeps.grid import read_grid
from looped.sweeps.launch import run_sweep
from looped.sweeps.plan import plan_sweep


class Watcher:
    """Remembers what it is told."""

    def __init__(self):
        self.events = []

    def skipped(self, runs):
        self.events.append(("skipped", len(runs)))

    def started(self, run):
        self.events.append(("started", run.name))

    def tick(self, running):
        assert len(running) <= 2

    def ended(self, run, error):
        self.events.append(("ended", run.name, error))


@pytest.mark.slow
def test_all_runs_complete_and_are_skipped_the_second_time(write_grid, tmp_path, capsys):
    """Four runs, two at a time; a second call trains nothing and takes no worker."""
    grid = write_grid()
    assert main(["sweep", "run", str(grid), "--jobs", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert all("loss" in line for line in lines)
    runs = plan_sweep(read_grid(grid))
    for run in runs:
        record = read_run_file(run.directory / "run.json")
        assert record.status == "complete"
        assert record.progress["tokens"] == 640
        assert record.model["recurrences"] == run.architecture.recurrences
    started = time.monotonic()
    assert main(["sweep", "run", str(grid), "--jobs", "2"]) == 0
    assert time.monotonic() - started < 2
    assert "4 of 4 runs were finished before" in capsys.readouterr().out


@pytest.mark.slow
def test_a_failed_run_does_not_stop_the_others(write_grid, tmp_path, capsys):
    """One run finds its directory occupied by a file; the other three are trained."""
    grid = write_grid()
    runs = plan_sweep(read_grid(grid))
    runs[0].directory.parent.mkdir()
    runs[0].directory.write_text("in the way")
    watcher = Watcher()
    outcome = run_sweep(runs, out=tmp_path / "sweep", jobs=2, observer=watcher)
    assert list(outcome.failed) == [runs[0].name]
    assert (outcome.trained, outcome.skipped) == (3, 0)
    assert runs[0].directory.read_text() == "in the way"
    ended = {event[1]: event[2] for event in watcher.events if event[0] == "ended"}
    assert [ended[run.name] is None for run in runs] == [False, True, True, True]


@pytest.mark.slow
def test_a_mistake_in_the_base_is_one_line_per_run(write_grid, tmp_path, capsys):
    """A wrong data directory is reported in the words of `looped fit`, status 1."""
    grid = write_grid(
        base_changes={"data": {"data_dir": "nowhere", "batch_size": 4}}, tokens={"1e3": [8]}
    )
    assert main(["sweep", "run", str(grid)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 2
    assert "no prepared data in nowhere" in error


@pytest.mark.slow
def test_a_killed_sweep_goes_on_where_it_was(write_grid, tmp_path):
    """SIGKILL to the launcher ends its workers; the next call resumes and completes every run."""
    grid = write_grid(tokens={"6.4e3": [8, 16]})
    command = [sys.executable, "-m", "looped.cli", "sweep", "run", str(grid), "--jobs", "2"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    sweep = tmp_path / "sweep"
    deadline = time.monotonic() + 120
    while not list(sweep.glob("*/checkpoints/last.ckpt")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(1)
    left = subprocess.run(["pgrep", "-f", "looped.sweeps.worker"], capture_output=True, text=True)
    mine = [pid for pid in left.stdout.split() if _working_in(pid, tmp_path)]
    assert mine == []
    assert main(["sweep", "run", str(grid), "--jobs", "2"]) == 0
    records = [read_run_file(path) for path in sweep.glob("*/run.json")]
    assert [record.status for record in records] == ["complete"] * 4
    assert {record.progress["tokens"] for record in records} == {6400}


def _working_in(pid: str, directory) -> bool:
    """Whether a process holds a file below a directory open."""
    try:
        links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return False
    return any(link.startswith(str(directory)) for link in links)


def test_a_second_launcher_is_refused(write_grid, tmp_path):
    """Two launchers on one sweep would train the same run twice into one directory."""
    runs = plan_sweep(read_grid(write_grid()))
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time; from pathlib import Path; "
            "from looped.sweeps.launch import _sole_launcher\n"
            f"with _sole_launcher(Path({str(tmp_path / 'sweep')!r})): print(1, flush=True); "
            "time.sleep(60)",
        ],
        stdout=subprocess.PIPE,
    )
    holder.stdout.readline()
    with pytest.raises(UserError, match="another launcher"):
        run_sweep(runs, out=tmp_path / "sweep", jobs=1, observer=Watcher())
    holder.kill()
    holder.wait()


def test_no_jobs_are_refused(write_grid, capsys):
    assert main(["sweep", "run", str(write_grid()), "--jobs", "0"]) == 2
    assert "--jobs 0" in capsys.readouterr().err
