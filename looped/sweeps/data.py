"""The data of a sweep, as far as planning looks at it: its counts, and whether it fits."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from looped.errors import UserError
from looped.sweeps.base import Base
from looped.sweeps.plan import PlannedRun
from looped.sweeps.status import record_of

if TYPE_CHECKING:
    from looped.datamodules.prepared_data import PreparedData


def data_of(base: Base, *, runs: Sequence[PlannedRun] = ()) -> "PreparedData | None":
    """What the prepared data of a sweep says of itself; null when there is none yet.

    A plan may come before its data, and be made where an object store is out of reach.

    Args:
        base: of the sweep; names the data.
        runs: whose models the data must fit; those that have begun must have begun with it.

    Raises:
        UserError: the data is there, but damaged, of another vocabulary or row length, or not that
            which runs were trained on.
    """
    from looped.datamodules.directory import Directory
    from looped.datamodules.prepared_data import read_prepared

    if base.data_dir is None:
        return None
    try:
        if not Directory.at(base.data_dir).exists():
            return None
    except (UserError, OSError):
        return None
    models = [run.architecture for run in runs]
    for seq_len, vocab_size in sorted({(model.seq_len, model.vocab_size) for model in models}):
        read_prepared(base.data_dir, seq_len=seq_len, vocab_size=vocab_size)
    data = read_prepared(base.data_dir)
    for run in runs:
        record = record_of(run.directory)
        before = ((record and record.data) or {}).get("fingerprint", data.fingerprint)
        if before != data.fingerprint:
            raise UserError(
                f"{base.data_dir} holds other data than {run.name} was trained on: fingerprint "
                f"{data.fingerprint} instead of {before}. Name the directory of the data it had, "
                "or choose another out"
            )
    return data
