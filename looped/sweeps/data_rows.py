"""How many rows the data of a sweep has, if it is there."""

from looped.errors import UserError
from looped.sweeps.base import Base


def train_rows_of(base: Base) -> int | None:
    """Training rows of the base's data; null when it is not there or not of `looped prepare`."""
    return _rows(base, "train")


def val_rows_of(base: Base) -> int | None:
    """Validation rows; null likewise."""
    return _rows(base, "val")


def _rows(base: Base, split: str) -> int | None:
    from looped.datamodules.prepared_data import read_prepared

    if base.data_dir is None:
        return None
    try:
        rows: int = getattr(read_prepared(base.data_dir), split).rows
    except (UserError, OSError):
        return None
    return rows
