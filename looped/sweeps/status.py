"""Where each run stands, from what lies in and beside its directory."""

from pathlib import Path
from typing import Literal, get_args

from looped.record import (
    CHECKPOINT_DIR,
    LAST_CHECKPOINT,
    RUN_FILE,
    Record,
    RecordError,
    read_run_file,
)
from looped.sweeps.failures import failure_path
from looped.sweeps.locks import is_held

RunStatus = Literal["planned", "running", "complete", "stopped", "failed", "diverged"]
STATUSES: tuple[RunStatus, ...] = get_args(RunStatus)


def record_of(directory: Path) -> Record | None:
    """The newest record of a run; null when there is none or it cannot be read."""
    try:
        return read_run_file(directory / RUN_FILE)
    except RecordError:
        return None


def status_of(directory: Path) -> RunStatus:
    """Where the run of a run directory stands.

    `running` is what somebody trains right now: a record says so long after its process was
    killed, the lock does not.
    """
    record = record_of(directory)
    if record is not None and record.status in ("complete", "diverged"):
        return record.status
    if is_held(directory):
        return "running"
    if failure_path(directory).exists():
        return "failed"
    return "stopped" if record is not None or can_resume(directory) else "planned"


def is_finished(directory: Path) -> bool:
    """Whether there is nothing left to train: complete, or diverged for good."""
    record = record_of(directory)
    return record is not None and record.status in ("complete", "diverged")


def can_resume(directory: Path) -> bool:
    """Whether the run has left a checkpoint to go on from."""
    return (directory / CHECKPOINT_DIR / LAST_CHECKPOINT).exists()


def has_begun(directory: Path) -> bool:
    """Whether anything of the run is there, or being made."""
    return (directory / RUN_FILE).exists() or can_resume(directory) or is_held(directory)
