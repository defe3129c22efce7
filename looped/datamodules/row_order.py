"""Which rows are in which batch: arithmetic only, the same on every machine.

litdata's own order depends on the number of loader processes and on the kind of disk, and it ends
an epoch differently after a resume. Here the order of an epoch follows from the seed, the epoch
and the number of rows alone; ranks and loader processes share it out.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from looped.errors import UserError

RowNumbers = npt.NDArray[np.int64]


class EpochOrder:
    """All rows of one epoch in shuffled order.

    The chunks come in random order, and within each chunk the rows do, so that a remote store is
    read chunk by chunk. Data of one chunk (64 MiB) or less is permuted as a whole.

    Args:
        rows: number of rows.
        rows_per_chunk: rows in every chunk but the last, which may have fewer.
        seed: another seed gives another order.
        epoch: another epoch gives another order.
    """

    def __init__(self, rows: int, *, rows_per_chunk: int, seed: int, epoch: int) -> None:
        self.rows = rows
        self._rows_per_chunk = rows_per_chunk
        self._seed = (seed, epoch)
        self._chunks = np.random.default_rng(self._seed).permutation(-(-rows // rows_per_chunk))
        self._ends = np.cumsum([self._size(chunk) for chunk in self._chunks])
        self._current: tuple[int, RowNumbers] | None = None

    def between(self, start: int, stop: int) -> RowNumbers:
        """Row numbers at the places `start` to `stop` - 1 of the order."""
        parts = []
        while start < stop:
            place = int(np.searchsorted(self._ends, start, side="right"))
            rows = self._shuffled_chunk(place)
            part = rows[start - int(self._ends[place]) + len(rows) :][: stop - start]
            parts.append(part)
            start += len(part)
        return np.concatenate(parts)

    def _size(self, chunk: int) -> int:
        first = int(chunk) * self._rows_per_chunk
        return min(first + self._rows_per_chunk, self.rows) - first

    def _shuffled_chunk(self, place: int) -> RowNumbers:
        if self._current is None or self._current[0] != place:
            chunk = int(self._chunks[place])
            rows = np.random.default_rng((*self._seed, chunk)).permutation(self._size(chunk))
            self._current = (place, rows + chunk * self._rows_per_chunk)
        return self._current[1]


@dataclass(frozen=True)
class EpochShare:
    """The batches of one rank from some row of an epoch to its end.

    Each step takes the next `batch_size * world_size` rows of the order, one batch for each rank.
    What is left at the end and does not suffice for a step is not used in this epoch.

    Attributes:
        order: of the epoch.
        first: rows of the order that are already used.
        batch_size: rows per batch and rank.
        rank: of this process.
        world_size: number of processes.
    """

    order: EpochOrder
    first: int
    batch_size: int
    rank: int
    world_size: int

    def __len__(self) -> int:
        return (self.order.rows - self.first) // (self.batch_size * self.world_size)

    def __getitem__(self, step: int) -> RowNumbers:
        start = self.first + (step * self.world_size + self.rank) * self.batch_size
        return self.order.between(start, start + self.batch_size)


def deal_in_order(rows: int, *, batch_size: int, rank: int, world_size: int) -> list[range]:
    """The rows of each evaluation batch of one rank.

    The ranks take turns in rounds of one batch each. Every row is in exactly one batch of one
    rank, no batch is empty, and every rank has the same number of batches, so that collectives
    inside the evaluation meet. With one process, all batches but the last are full.

    Raises:
        UserError: there are too few rows for that.
    """
    full_rounds, rest = divmod(rows, batch_size * world_size)
    rounds = [batch_size * world_size] * full_rounds
    if rest >= world_size:
        rounds.append(rest)
    elif rest:  # not enough for everybody: share the rows of the last full round as well
        if not rounds or batch_size == 1:
            raise UserError(
                f"{rows} rows cannot be dealt to {world_size} processes in batches of"
                f" {batch_size}: use fewer processes, a larger batch_size or more text"
            )
        shared = rounds.pop() + rest
        rounds += [shared // 2, shared - shared // 2]
    batches = []
    start = 0
    for size in rounds:
        first, stop = (start + size * r // world_size for r in (rank, rank + 1))
        batches.append(range(first, stop))
        start += size
    return batches
