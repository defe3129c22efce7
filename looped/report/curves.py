"""The training curve of a run, from the files its logger left in the run directory."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from looped.record import METRICS_FILE, Record, RecordError, read_checkpoint, read_run_file
from looped.scaling.law import Floats
from looped.scaling.points import is_number
from looped.scaling.run_records import CHECKPOINT_SUFFIX, home_of

NEEDED = ("step", "train_flops", "train_loss")


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainedRun:
    """A run directory, read once more for what the fit does not need.

    Attributes:
        record: its newest record.
        train_flops: training FLOPs spent at each logged step; shape (m,); empty without a curve.
        train_loss: training loss there, nats per token; same shape.
    """

    record: Record
    train_flops: Floats
    train_loss: Floats

    @property
    def has_curve(self) -> bool:
        """Whether its loggers left a training curve that can be read."""
        return len(self.train_flops) > 1

    @property
    def validations(self) -> list[tuple[int, float]]:
        """Training FLOPs and validation loss at the recurrence count it was trained with."""
        r = self.record.model.get("recurrences")
        return [
            (entry.train_flops, entry.loss)
            for entry in self.record.validation
            if entry.recurrences == r
            and entry.loss is not None
            and is_number(entry.train_flops)
            and entry.train_flops > 0
        ]


def read_trained_run(path: Path) -> TrainedRun | None:
    """Read the record at `path` and the training curve beside it.

    Args:
        path: a `run.json` or checkpoint.

    Returns:
        Null when the record cannot be read (any more); without a curve when that cannot.
    """
    read = read_checkpoint if path.suffix == CHECKPOINT_SUFFIX else read_run_file
    try:
        record = read(path)
    except RecordError:
        return None
    flops, loss = _read_curve(home_of(path))
    return TrainedRun(record=record, train_flops=flops, train_loss=loss)


def _read_curve(run_dir: Path) -> tuple[Floats, Floats]:
    """The curve over all starts; where a resumed start repeats steps, the later one speaks."""
    curve = pd.DataFrame(columns=list(NEEDED), dtype=float)
    for path in [*_earlier_starts(run_dir), run_dir / METRICS_FILE]:
        part = _read_part(path)
        if part is not None and len(part):
            earlier = curve[curve["step"] < part["step"].iloc[0]]
            curve = pd.concat([earlier, part]) if len(earlier) else part
    return (
        curve["train_flops"].to_numpy(dtype=float),
        curve["train_loss"].to_numpy(dtype=float),
    )


def _earlier_starts(run_dir: Path) -> list[Path]:
    """Curves of the starts before the last, in their order."""
    stem, _, suffix = METRICS_FILE.partition(".")
    numbered = {
        int(match[1]): path
        for path in run_dir.glob(f"{stem}-start=*.{suffix}")
        if (match := re.fullmatch(r".*=(\d+)", path.stem))
    }
    return [numbered[start] for start in sorted(numbered)]


def _read_part(path: Path) -> pd.DataFrame | None:
    """Logged training losses of one start; null when there is no such table."""
    try:
        table = pd.read_csv(path, usecols=list(NEEDED))
    except (OSError, ValueError):
        return None
    numbers = pd.DataFrame(
        {name: pd.to_numeric(table[name], errors="coerce") for name in NEEDED}, dtype=float
    )
    positive = (numbers["train_flops"] > 0) & (numbers["train_loss"] > 0)
    return numbers[positive & (numbers < np.inf).all(axis=1)]
