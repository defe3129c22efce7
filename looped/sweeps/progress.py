"""How far a running job is, from what it leaves in its directory every few seconds."""

import csv
from dataclasses import dataclass
from pathlib import Path

from looped.record import METRICS_FILE, Record

LOSS_COLUMN = "train_loss"
TAIL_BYTES = 8192


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a running job is.

    Attributes:
        tokens: training tokens done.
        planned_tokens: of its horizon.
        tokens_per_s: lately; null before there is anything to tell it from.
        loss: the newest training loss in nats, else the newest validation loss; null before both.
    """

    tokens: int
    planned_tokens: int
    tokens_per_s: float | None
    loss: float | None

    @property
    def left_s(self) -> float | None:
        """Seconds left at this pace; null when the pace is not known."""
        if not self.tokens_per_s:
            return None
        return max(self.planned_tokens - self.tokens, 0) / self.tokens_per_s


def progress_of(record: Record, directory: Path, *, first: Record) -> Progress:
    """Progress of a run.

    Args:
        record: its newest.
        directory: where its training curve lies.
        first: the oldest record seen of this start, to measure the pace from.
    """
    tokens, seconds = record.progress["tokens"], record.wall_s
    new_tokens, new_seconds = tokens - first.progress["tokens"], seconds - first.wall_s
    loss = last_train_loss(directory / METRICS_FILE)
    if loss is None and record.validation:
        loss = record.validation[-1].loss
    return Progress(
        tokens=tokens,
        planned_tokens=record.progress["planned_tokens"],
        tokens_per_s=new_tokens / new_seconds if new_seconds > 0 and new_tokens > 0 else None,
        loss=loss,
    )


def last_train_loss(path: Path) -> float | None:
    """The newest training loss in a training curve; null when there is none yet."""
    try:
        with path.open("rb") as stream:
            header = stream.readline().decode("utf-8")
            stream.seek(0, 2)
            stream.seek(max(len(header), stream.tell() - TAIL_BYTES))
            tail = stream.read().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    columns = next(csv.reader([header]), [])
    if LOSS_COLUMN not in columns:
        return None
    place = columns.index(LOSS_COLUMN)
    for row in reversed(list(csv.reader(tail.splitlines()))):
        if len(row) == len(columns) and row[place]:  # the first line of a tail may be half a row
            try:
                return float(row[place])
            except ValueError:
                continue
    return None
