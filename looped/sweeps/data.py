"""The data of a sweep, as far as planning looks at it: its counts, and whether it fits."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from looped.errors import UserError
from looped.sweeps.plan import PlannedRun

if TYPE_CHECKING:
    from looped.datamodules.prepared_data import PreparedData


def data_of(runs: Sequence[PlannedRun]) -> "PreparedData | None":
    """What the prepared data of a sweep says of itself; null when there is none yet.

    A plan may come before its data, and be made where an object store is out of reach.

    Raises:
        UserError: the data is there, but damaged or of another vocabulary or row length.
    """
    from looped.datamodules.directory import Directory
    from looped.datamodules.prepared_data import read_prepared

    base = runs[0].base
    if base.data_dir is None:
        return None
    try:
        if not Directory.at(base.data_dir).exists():
            return None
    except (UserError, OSError):
        return None
    shapes = {(run.architecture.seq_len, run.architecture.vocab_size) for run in runs}
    for seq_len, vocab_size in sorted(shapes):
        data = read_prepared(base.data_dir, seq_len=seq_len, vocab_size=vocab_size)
    return data
