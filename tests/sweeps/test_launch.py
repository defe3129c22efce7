"""Sweeps that really train: reused workers, skipping, resuming, failures, kills."""

import os
import signal
import subprocess
import sys
import time

import pytest

from looped.cli import main
from looped.record import read_checkpoint, read_run_file
from looped.sweeps.grid import read_grid
from looped.sweeps.launch import run_sweep, what_is_left
from looped.sweeps.messages import job_of
from looped.sweeps.plan import plan_sweep
from looped.sweeps.status import status_of
from looped.sweeps.worker import perform
from looped.sweeps.workers import Workers
from tests.test_record import a_record


class Watcher:
    """Remembers what it is told; may call a function when time has passed."""

    def __init__(self, on_tick=None):
        self.events = []
        self._on_tick = on_tick

    def skipped(self, left):
        self.events.append(("skipped", len(left.finished), len(left.failed)))

    def started(self, run):
        self.events.append(("started", run.name))

    def tick(self, running):
        assert len(running) <= 2
        if self._on_tick:
            self._on_tick(running)

    def ended(self, run, reply):
        self.events.append(("ended", run.name, reply))

    def ended_elsewhere(self, run):
        self.events.append(("elsewhere", run.name))

    def stopping(self):
        self.events.append(("stopping",))

    def ends(self):
        return {event[1]: event[2].outcome for event in self.events if event[0] == "ended"}


def _runs(grid):
    return plan_sweep(read_grid(grid))


def _sweep(runs, observer, *, retry=False):
    with Workers(1) as workers:
        return run_sweep(what_is_left(runs, retry=retry), workers=workers, observer=observer)


def _hold(directory):
    """Another process that holds the lock of a run, as one that trains it does."""
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import time; from pathlib import Path; from looped.sweeps.locks import take_lock\n"
            f"lock = take_lock(Path({str(directory)!r})); print(1, flush=True); time.sleep(60)",
        ],
        stdout=subprocess.PIPE,
    )
    holder.stdout.readline()
    return holder


def _kill(process):
    process.kill()
    process.wait()


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
def test_a_failed_run_does_not_stop_the_others(write_grid, tmp_path):
    """One run finds a file in its place; it is recorded, not tried again, until --retry."""
    runs = _runs(write_grid(tokens={"6.4e2": [8]}))
    failing = runs[0]
    failing.directory.parent.mkdir()
    failing.directory.write_text("in the way")
    watcher = Watcher()
    outcome = _sweep(runs, watcher)
    assert list(outcome.failed) == [failing.name]
    assert (outcome.trained, outcome.skipped) == (1, 0)
    assert failing.directory.read_text() == "in the way"
    assert watcher.ends() == {run.name: "failed" if run is failing else "trained" for run in runs}
    assert status_of(failing.directory) == "failed"

    failing.directory.unlink()
    watcher = Watcher()
    outcome = _sweep(runs, watcher)
    assert watcher.events == [("skipped", 1, 1)]
    assert "--retry" in outcome.failed[failing.name]

    outcome = _sweep(runs, Watcher(), retry=True)
    assert (outcome.trained, outcome.failed) == (1, {})
    assert status_of(failing.directory) == "complete"


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["local", "commands"])
def test_a_mistake_of_all_runs_is_one_line_before_any_starts(
    write_grid, tmp_path, capsys, launcher
):
    """Status 2, and neither a directory nor a line for another scheduler."""
    grid = write_grid({"data": {"data_dir": "nowhere", "batch_size": 4}}, tokens={"1e3": [8]})
    assert main(["sweep", "run", str(grid), "--launcher", launcher]) == 2
    output = capsys.readouterr()
    assert "cannot start: no prepared data in nowhere" in output.err
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert not (tmp_path / "sweep").exists()


@pytest.mark.slow
def test_a_killed_sweep_goes_on_where_it_was(write_grid, tmp_path):
    """SIGKILL to the launcher ends its workers; the next call resumes and completes every run."""
    grid = write_grid(tokens={"6.4e3": [8, 16]})
    command = [sys.executable, "-m", "looped", "sweep", "run", str(grid), "--jobs", "2"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    sweep = tmp_path / "sweep"
    _wait_for(lambda: list(sweep.glob("*/checkpoints/last.ckpt")), process)
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


def _wait_for(condition, process):
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _working_in(pid: str, directory) -> bool:
    """Whether a process holds a file below a directory open."""
    try:
        links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return False
    return any(link.startswith(str(directory)) for link in links)


@pytest.mark.slow
def test_ctrl_c_once_writes_checkpoints(write_grid, tmp_path):
    """SIGINT to the launcher: each run at hand stops at a step that its checkpoint holds; 130."""
    grid = write_grid({"checkpoints": {"every_n_steps": 10**6}}, tokens={"6.4e5": [8, 16]})
    command = [sys.executable, "-m", "looped", "sweep", "run", str(grid), "--jobs", "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _wait_for(lambda: len(list((tmp_path / "sweep").glob("*/run.json"))) == 2, process)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "go on with looped sweep run" in error
    assert "each run writes a checkpoint" in out
    begun = [run for run in _runs(grid) if run.directory.exists()]
    assert len(begun) == 2
    for run in begun:
        record = read_run_file(run.directory / "run.json")
        assert record.status == "stopped"
        assert 0 < record.progress["step"] < 10_000
        checkpoint = read_checkpoint(run.directory / "checkpoints" / "last.ckpt")
        assert checkpoint.progress["step"] == record.progress["step"]
        assert status_of(run.directory) == "stopped"


@pytest.mark.slow
def test_ctrl_c_twice_ends_it_now(write_grid, tmp_path):
    """The second one does not wait for anything; a run without checkpoint is simply not begun."""
    runs = _runs(write_grid({"checkpoints": {"every_n_steps": 10**6}}, tokens={"6.4e6": [8]}))

    def stop_twice(running):
        if (runs[0].directory / "run.json").exists():
            for _ in range(2):
                signal.raise_signal(signal.SIGINT)

    watcher = Watcher(stop_twice)
    outcome = _sweep(runs, watcher)
    assert outcome.interrupted
    assert watcher.ends() == {runs[0].name: "stopped"}
    assert status_of(runs[0].directory) == "stopped"  # its record still says running
    assert status_of(runs[1].directory) == "planned"


@pytest.mark.slow
def test_two_launchers_share_the_work(write_grid, tmp_path):
    """Each run is trained once, by one of them; both end when all is done."""
    grid = write_grid(tokens={"6.4e2": [8, 16]})
    command = [sys.executable, "-m", "looped", "sweep", "run", str(grid)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    runs = _runs(grid)
    assert {status_of(run.directory) for run in runs} == {"complete"}
    for run in runs:
        log = (tmp_path / "sweep" / "logs" / f"{run.name}.log").read_text()
        assert log.count("Plan:") == 1
        assert sum(f"{run.name} " in text and "loss" in text for text in outputs) >= 1


@pytest.mark.slow
def test_a_run_is_taken_over_when_its_owner_dies(write_grid, tmp_path):
    """While another process holds a run the rest goes on; its lock dies with it, and no earlier."""
    runs = _runs(write_grid(tokens={"6.4e2": [8]}))
    holder = _hold(runs[0].directory)

    def let_go(running):
        if holder.poll() is None and status_of(runs[1].directory) == "complete":
            assert status_of(runs[0].directory) == "running"
            _kill(holder)

    watcher = Watcher(let_go)
    outcome = _sweep(runs, watcher)
    assert outcome.trained == 2
    names = [event[1] for event in watcher.events if event[0] == "started"]
    assert names == [runs[1].name, runs[0].name]


def test_the_worker_has_the_last_word(write_grid, tmp_path):
    """Between the launcher's look and the worker's start another may have taken or ended a run."""
    (run, *_) = _runs(write_grid())
    holder = _hold(run.directory)
    assert perform(job_of(run)).outcome == "taken"
    _kill(holder)
    run.directory.mkdir(parents=True)
    a_record(status="complete").write(run.directory)
    assert perform(job_of(run)).outcome == "finished"


@pytest.mark.slow
def test_a_run_of_several_processes(write_grid, tmp_path):
    """Two processes of one run: `looped fit` of its own, twice the tokens per step, one lock."""
    trainer = {"accelerator": "cpu", "devices": 2, "strategy": "ddp"}
    runs = _runs(write_grid({"trainer": trainer}, tokens={"6.4e2": [8]}, recurrences=[2]))
    outcome = _sweep(runs, Watcher())
    assert (outcome.trained, outcome.failed) == (1, {})
    record = read_run_file(runs[0].directory / "run.json")
    assert record.status == "complete"
    assert record.progress["step"] == 5
    assert record.progress["tokens"] == 640


def test_no_jobs_are_refused(write_grid, capsys):
    assert main(["sweep", "run", str(write_grid()), "--jobs", "0"]) == 2
    assert "--jobs: 0 is below 1" in capsys.readouterr().err
