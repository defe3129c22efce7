"""Trains the runs of a sweep, several at a time, and shares them with other launchers."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Protocol

from looped.errors import UserError
from looped.sweeps.failures import clear_failure, failure_of, record_failure
from looped.sweeps.messages import Reply
from looped.sweeps.plan import PlannedRun
from looped.sweeps.status import is_finished, status_of
from looped.sweeps.workers import Workers

POLL_S = 0.5


class Observer(Protocol):
    """Is told what happens while a sweep runs."""

    def skipped(self, left: "Left") -> None:
        """These runs were finished before; these failed before and are not tried again."""

    def started(self, run: PlannedRun) -> None:
        """A worker has taken up a run."""

    def tick(self, running: list[PlannedRun]) -> None:
        """Time has passed; these are being trained."""

    def ended(self, run: PlannedRun, reply: Reply) -> None:
        """A run ended here, one way or another; `taken` when another launcher has it."""

    def ended_elsewhere(self, run: PlannedRun) -> None:
        """A run ended in the hands of another launcher."""

    def stopping(self) -> None:
        """The runs were asked to write a checkpoint and end."""


@dataclass(kw_only=True)
class SweepOutcome:
    """What became of a sweep.

    Attributes:
        trained: runs trained to their end now, here.
        skipped: runs that were finished before.
        elsewhere: runs that other launchers finished meanwhile.
        failed: run name -> what went wrong, in one line; earlier failures included.
        interrupted: whether the user stopped the sweep.
    """

    trained: int = 0
    skipped: int = 0
    elsewhere: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False


@dataclass(frozen=True, kw_only=True)
class Left:
    """The runs of a sweep by what is left to do.

    Attributes:
        waiting: to be trained, unless another launcher is at it, in the order of the plan.
        finished: complete, or diverged for good.
        failed: those that failed and are not tried again -> what went wrong, in one line.
    """

    waiting: list[PlannedRun] = field(default_factory=list)
    finished: list[PlannedRun] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def what_is_left(runs: Sequence[PlannedRun], *, retry: bool = False) -> Left:
    """Sort runs by what is left to do.

    Args:
        runs: of a sweep, in the order in which to start them.
        retry: try those again that failed before.
    """
    left = Left()
    for run in runs:
        error = failure_of(run.directory)
        if is_finished(run.directory):
            left.finished.append(run)
        elif error is not None and not retry:
            left.failed[run.name] = f"{error} (--retry tries it again)"
        else:
            left.waiting.append(run)
    return left


def run_sweep(left: Left, *, workers: Workers, observer: Observer) -> SweepOutcome:
    """Train every run that is waiting; resume those that left a checkpoint.

    Ctrl-C or SIGTERM once: the runs at hand write a checkpoint and end; twice: they end now. Runs
    that another launcher is training are left to it, and taken over should it stop.

    Args:
        left: what there is to do.
        workers: train the runs.
        observer: is told about progress.

    Returns:
        What became of it. A failed run does not stop the others.

    Raises:
        UserError: the directory of the sweep cannot be written.
    """
    outcome = SweepOutcome(skipped=len(left.finished), failed=dict(left.failed))
    observer.skipped(left)
    try:
        for run in left.waiting:
            clear_failure(run.directory)
        with _signals() as asked:
            _train(
                [*left.waiting], workers=workers, observer=observer, asked=asked, outcome=outcome
            )
    except OSError as error:
        raise UserError(f"{error.filename} cannot be written: {error.strerror}") from error
    return outcome


def _train(
    waiting: list[PlannedRun],
    *,
    workers: Workers,
    observer: Observer,
    asked: list[int],
    outcome: SweepOutcome,
) -> None:
    elsewhere: list[PlannedRun] = []
    stops = 0
    while workers.running or ((waiting or elsewhere) and not asked):
        if len(asked) > stops:
            outcome.interrupted = True
            stops = len(asked)
            if stops == 1:
                workers.stop()
                observer.stopping()
            else:
                workers.kill()
        while waiting and workers.has_room and not asked:
            run = waiting.pop(0)
            if status_of(run.directory) == "running":
                elsewhere.append(run)
                continue
            workers.start(run)
            observer.started(run)
        for run, reply in workers.replies(POLL_S):
            if reply.outcome == "taken":
                elsewhere.append(run)
            elif reply.outcome == "finished":
                outcome.elsewhere += 1
            elif reply.outcome == "trained":
                outcome.trained += 1
            elif reply.outcome == "failed":
                outcome.failed[run.name] = reply.error or "for no known reason"
                record_failure(run.directory, outcome.failed[run.name])
            observer.ended(run, reply)
        observer.tick(workers.running)
        elsewhere, back = _look_elsewhere(elsewhere, observer=observer, outcome=outcome)
        waiting += back
    outcome.interrupted |= bool(asked)


def _look_elsewhere(
    runs: list[PlannedRun], *, observer: Observer, outcome: SweepOutcome
) -> tuple[list[PlannedRun], list[PlannedRun]]:
    """Runs that another launcher still has, and those that it left unfinished."""
    still, back = [], []
    for run in runs:
        status = status_of(run.directory)
        if status == "running":
            still.append(run)
        elif status in ("complete", "diverged"):
            outcome.elsewhere += 1
            observer.ended_elsewhere(run)
        elif status == "failed":
            outcome.failed[run.name] = failure_of(run.directory) or "elsewhere"
            observer.ended_elsewhere(run)
        else:
            back.append(run)
    return still, back


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Collect Ctrl-C and SIGTERM instead of dying of them."""
    asked: list[int] = []

    def notice(signum: int, frame: FrameType | None) -> None:
        asked.append(signum)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, notice) for number in numbers}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
