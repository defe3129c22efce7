"""What launcher and worker say to each other, one JSON line each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from looped.sweeps.plan import PlannedRun

LOG_DIR = "logs"

Outcome = Literal["trained", "finished", "stopped", "failed", "taken", "possible"]


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run to train, or to look at.

    Attributes:
        directory: the run directory.
        arguments: of `looped fit`, without those of resuming.
        log: file for what the run prints.
        own_process: whether the run must have a `looped fit` of its own.
        check_only: whether to look if it could start, and not to train it.
    """

    directory: str
    arguments: list[str]
    log: str
    own_process: bool
    check_only: bool = False


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What became of a job.

    Attributes:
        outcome: trained to its end; finished before; stopped on request, with a checkpoint;
            failed; taken by somebody else; or, of a check, possible.
        error: what went wrong, in one line; null unless it failed.
    """

    outcome: Outcome
    error: str | None = None


def job_of(run: PlannedRun, *, extra: Sequence[str] = (), check_only: bool = False) -> Job:
    """The job that trains a run, in the directories of its sweep.

    Args:
        run: to train.
        extra: further arguments of `looped fit`.
        check_only: as of `Job`.
    """
    return Job(
        directory=str(run.directory),
        arguments=[*run.fit_arguments, "--trainer.enable_progress_bar=false", *extra],
        log=str(run.directory.parent / LOG_DIR / f"{run.name}.log"),
        own_process=not run.base.one_process,
        check_only=check_only,
    )
