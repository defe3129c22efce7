"""Trains the runs of a sweep, several at a time, in worker processes that are used again."""

import fcntl
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from looped.errors import UserError
from looped.sweeps.plan import PlannedRun
from looped.sweeps.status import can_resume, is_finished

LOG_DIR = "logs"
LOCK_FILE = ".lock"
POLL_S = 0.5


class Observer(Protocol):
    """Is told what happens while a sweep runs."""

    def skipped(self, runs: list[PlannedRun]) -> None:
        """These were finished before."""

    def started(self, run: PlannedRun) -> None:
        """A worker has taken up a run."""

    def tick(self, running: list[PlannedRun]) -> None:
        """Time has passed; these are being trained."""

    def ended(self, run: PlannedRun, error: str | None) -> None:
        """A run ended, well or with an error of one line."""


@dataclass(frozen=True, kw_only=True)
class SweepOutcome:
    """What became of a sweep.

    Attributes:
        trained: runs trained now.
        skipped: runs that were finished before.
        failed: run name -> what went wrong, in one line.
    """

    trained: int
    skipped: int
    failed: dict[str, str]


def run_sweep(runs: list[PlannedRun], *, out: Path, jobs: int, observer: Observer) -> SweepOutcome:
    """Train every run that is not finished; resume those that left a checkpoint.

    Args:
        runs: in the order in which to start them.
        out: directory of the sweep.
        jobs: runs at a time; the cores are divided between them.
        observer: is told about progress.

    Returns:
        What became of it. A failed run does not stop the others.

    Raises:
        UserError: fewer than one job, or another launcher is at work in `out`.
    """
    if jobs < 1:
        raise UserError(f"--jobs {jobs} is below 1: choose 1 or more")
    with _sole_launcher(out):
        waiting = [run for run in runs if not is_finished(run)]
        skipped = [run for run in runs if is_finished(run)]
        observer.skipped(skipped)
        failed: dict[str, str] = {}
        trained = len(waiting)
        workers = _Workers(min(jobs, len(waiting)), out)
        try:
            for run, error in workers.train(waiting, observer):
                if error is not None:
                    failed[run.name] = error
                observer.ended(run, error)
        finally:
            workers.close()
    return SweepOutcome(trained=trained - len(failed), skipped=len(skipped), failed=failed)


class _Workers:
    """A fixed number of worker processes, each with one run at a time."""

    def __init__(self, count: int, out: Path) -> None:
        self._logs = out / LOG_DIR
        self._logs.mkdir(exist_ok=True)
        threads = str(max(1, len(os.sched_getaffinity(0)) // max(count, 1)))
        self._environment = os.environ | {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        self._idle = [self._new_process() for _ in range(count)]
        self._busy: dict[subprocess.Popen[str], PlannedRun] = {}

    def train(
        self, waiting: list[PlannedRun], observer: Observer
    ) -> Iterator[tuple[PlannedRun, str | None]]:
        """Yield each run as it ends, with what went wrong."""
        left = list(waiting)
        with selectors.DefaultSelector() as selector:
            while left or self._busy:
                while left and self._idle:
                    process, run = self._idle.pop(), left.pop(0)
                    self._send(process, run)
                    self._busy[process] = run
                    selector.register(process.stdout, selectors.EVENT_READ, process)  # type: ignore[arg-type]  # a pipe was asked for
                    observer.started(run)
                for key, _ in selector.select(timeout=POLL_S):
                    selector.unregister(key.fileobj)
                    process = key.data
                    run = self._busy.pop(process)
                    yield run, self._reply(process)
                observer.tick(list(self._busy.values()))

    def _send(self, process: "subprocess.Popen[str]", run: PlannedRun) -> None:
        arguments = [*run.fit_arguments, "--trainer.enable_progress_bar=false"]
        if can_resume(run):
            arguments.append("--ckpt_path=last")
        job = {"arguments": arguments, "log": str(self._logs / f"{run.name}.log")}
        assert process.stdin is not None
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()

    def _reply(self, process: "subprocess.Popen[str]") -> str | None:
        """Read a worker's answer; a worker that died is replaced by a new one."""
        assert process.stdout is not None
        line = process.stdout.readline()
        if line:
            self._idle.append(process)
            error: str | None = json.loads(line)["error"]
            return error
        self._idle.append(self._new_process())
        return f"its worker ended with exit status {process.wait()} (see {self._logs})"

    def _new_process(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "looped.sweeps.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._environment,
            text=True,
            start_new_session=True,  # Ctrl-C reaches the launcher alone, which then closes them
        )

    def close(self) -> None:
        """End all workers, in the middle of a run if need be."""
        for process in (*self._idle, *self._busy):
            assert process.stdin is not None
            process.stdin.close()
        for process in (*self._idle, *self._busy):
            process.wait()


@contextmanager
def _sole_launcher(out: Path) -> Iterator[None]:
    """Hold the sweep's lock, which the system releases however this process ends."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = (out / LOCK_FILE).open("w")
    except OSError as error:
        raise UserError(f"sweep directory {out}: {error.strerror}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UserError(f"another launcher is at work in {out}: wait for it to end") from error
        yield
