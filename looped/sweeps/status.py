"""Where each planned run stands, from what lies in its directory."""

from typing import Literal

from looped.record import (
    CHECKPOINT_DIR,
    LAST_CHECKPOINT,
    RUN_FILE,
    Record,
    RecordError,
    Status,
    read_run_file,
)
from looped.sweeps.plan import PlannedRun


def record_of(run: PlannedRun) -> Record | None:
    """The newest record of a run; null when there is none or it cannot be read."""
    try:
        return read_run_file(run.directory / RUN_FILE)
    except RecordError:
        return None


def status_of(run: PlannedRun) -> Status | Literal["planned"]:
    """`planned` for a run that has left no record yet, else the record's own status."""
    record = record_of(run)
    return "planned" if record is None else record.status


def is_finished(run: PlannedRun) -> bool:
    """Whether there is nothing left to train: complete, or diverged for good."""
    return status_of(run) in ("complete", "diverged")


def can_resume(run: PlannedRun) -> bool:
    """Whether the run has left a checkpoint to go on from."""
    return (run.directory / CHECKPOINT_DIR / LAST_CHECKPOINT).exists()
