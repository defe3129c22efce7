"""Batches for the Trainer: a stream to train on that continues exactly, a fixed order to evaluate.

Why not litdata's own `StreamingDataLoader`: it counts on being iterated past the last batch of an
epoch, while the Trainer stops at that batch. After a resume, its later epochs therefore begin at
the row of the checkpoint, again and again. Its storage and reader are used; the order is ours
(row_order.py).
"""

from collections.abc import Iterator
from typing import Any, Protocol

from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from looped.datamodules.row_order import EpochOrder, EpochShare, RowNumbers
from looped.datamodules.row_reader import Batch, RowReader
from looped.errors import UserError


class BatchPlan(Protocol):
    """The row numbers of each batch."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> RowNumbers | range: ...


class PlannedBatches(IterableDataset[Batch]):
    """Reads the batches of a plan, in its order whatever the number of loader processes.

    Args:
        reader: of the rows.
        plan: which rows; may be exchanged between two iterations.
    """

    def __init__(self, reader: RowReader, plan: BatchPlan) -> None:
        super().__init__()
        self.plan = plan
        self._reader = reader

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()  # the loader takes one batch from each process in turn
        first, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        for number in range(first, len(self.plan), step):
            yield self._reader.read(self.plan[number])


class TrainStream(DataLoader[Batch]):
    """Training batches, reshuffled each epoch, as one line that never repeats or skips a row.

    Iterating yields what is left of the current epoch; iterating again goes on, so that it does
    not matter where somebody stopped. The position survives in a checkpoint and may be taken up
    with another number of loader processes or ranks, or with another batch size.

    Args:
        reader: of the rows.
        rows: how many there are.
        rows_per_chunk: rows in each chunk of the store but the last.
        seed: of the order.
        fingerprint: of the data, so that a checkpoint is not continued on other data.
        batch_size: rows per batch and rank.
        rank: of this process.
        world_size: number of processes.
        num_workers: loader processes; 0 loads in the training process.
        pin_memory: stage batches in page-locked memory.
    """

    def __init__(
        self,
        reader: RowReader,
        *,
        rows: int,
        rows_per_chunk: int,
        seed: int,
        fingerprint: str,
        batch_size: int,
        rank: int = 0,
        world_size: int = 1,
        num_workers: int = 0,
        pin_memory: bool = False,
    ) -> None:
        self._rows = rows
        self._rows_per_chunk = rows_per_chunk
        self._seed = seed
        self._fingerprint = fingerprint
        self._rows_per_batch = batch_size
        self._rank = rank
        self._world_size = world_size
        self._epoch = 0
        self._rows_used = 0
        self._planned = PlannedBatches(reader, self._rest_of_epoch())
        super().__init__(
            self._planned, batch_size=None, num_workers=num_workers, pin_memory=pin_memory
        )

    def __len__(self) -> int:
        """Batches of a whole epoch, the same for every rank."""
        return self._rows // (self._rows_per_batch * self._world_size)

    def __iter__(self) -> Iterator[Batch]:  # type: ignore[override]  # a generator is simpler
        plan = self._rest_of_epoch()
        if len(plan) == 0:
            self._begin_epoch(self._epoch + 1)
            plan = self._rest_of_epoch()
        self._planned.plan = plan
        for batch in super().__iter__():
            self._rows_used += self._rows_per_batch * self._world_size
            yield batch

    def state_dict(self) -> dict[str, Any]:
        """The position after the newest batch, as plain types."""
        return {
            "fingerprint": self._fingerprint,
            "seed": self._seed,
            "epoch": self._epoch,
            "rows_used": self._rows_used,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue after the batch where `state` was taken.

        Raises:
            UserError: the state belongs to other data or to another seed.
        """
        if state["fingerprint"] != self._fingerprint:
            raise UserError(
                f"the checkpoint was trained on data {state['fingerprint']}, this directory holds"
                f" {self._fingerprint}: name the directory it was trained on, or start a new run"
            )
        if state["seed"] != self._seed:
            raise UserError(
                f"the checkpoint shuffles its data by seed {state['seed']}, not {self._seed}:"
                " resume with the seed it was started with"
            )
        self._begin_epoch(state["epoch"])
        self._rows_used = state["rows_used"]

    def _begin_epoch(self, epoch: int) -> None:
        self._epoch = epoch
        self._rows_used = 0

    def _rest_of_epoch(self) -> EpochShare:
        order = EpochOrder(
            self._rows,
            rows_per_chunk=self._rows_per_chunk,
            seed=self._seed,
            epoch=self._epoch,
        )
        return EpochShare(
            order,
            first=self._rows_used,
            batch_size=self._rows_per_batch,
            rank=self._rank,
            world_size=self._world_size,
        )
