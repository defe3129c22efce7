"""The training stream is one line of rows, wherever it is interrupted."""

from itertools import islice

import numpy as np
import pytest
import torch
from litdata import StreamingDataLoader, StreamingDataset
from litdata.streaming.item_loader import TokensLoader

from looped.datamodules.batches import PlannedBatches, TrainStream
from looped.datamodules.row_reader import RowReader
from looped.datamodules.row_store import RowWriter
from looped.errors import UserError

ROWS = 61


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> str:
    """Row n holds n, 0, 0."""
    directory = tmp_path_factory.mktemp("store") / "d"
    writer = RowWriter(directory, row_length=3, dtype="uint16", chunk_bytes=6 * 25)
    writer.write(np.stack([np.arange(ROWS), np.zeros(ROWS), np.zeros(ROWS)], axis=1))
    writer.close()
    return str(directory)


@pytest.fixture
def stream(store):
    def make(**changes) -> TrainStream:
        settings = {"rows": ROWS, "rows_per_chunk": 25, "seed": 3, "fingerprint": "f"}
        settings |= {"batch_size": 4}
        return TrainStream(RowReader(store, row_length=3), **(settings | changes))

    return make


def numbers(batch) -> list[int]:
    return batch[0][:, 0].tolist()


def take(stream, count) -> list[list[int]]:
    """The next batches, going through as many epochs as that takes."""
    taken = []
    while True:
        for batch in stream:
            taken.append(numbers(batch))
            if len(taken) == count:
                return taken


def test_an_epoch_has_as_many_batches_as_it_says_and_no_row_twice(stream):
    """Without it, the Trainer would stop early or wait for a batch that never comes."""
    for workers in (0, 2):
        batches = [numbers(batch) for batch in stream(num_workers=workers)]
        assert len(batches) == len(stream()) == 15
        assert len({row for batch in batches for row in batch}) == 60


def test_the_order_does_not_depend_on_the_workers(stream):
    """Without it, a run would change with the machine's number of cores."""
    assert take(stream(num_workers=0), 40) == take(stream(num_workers=2), 40)


def test_the_next_epoch_is_another_order(stream):
    """Without it, every epoch would repeat the first."""
    batches = take(stream(), 45)
    assert batches[:15] != batches[15:30] != batches[30:]


@pytest.mark.parametrize(
    ("done", "before", "after"),
    [(done, 0, 0) for done in (0, 1, 7, 14, 15, 16, 29, 30, 31)]
    + [(7, 2, 2), (15, 2, 2), (31, 2, 2), (7, 0, 2), (16, 2, 0)],
)
def test_a_resumed_stream_goes_on_at_the_next_row(stream, done, before, after):
    """Without it, rows would be trained on twice (pitfalls E, 35, 61), also in later epochs."""
    straight = take(stream(), done + 35)
    first = stream(num_workers=before)
    head = take(first, done) if done else []
    second = stream(num_workers=after)
    second.load_state_dict(first.state_dict())
    assert head + take(second, 35) == straight


def test_resuming_twice_is_resuming(stream):
    """Without it, the second interruption of an epoch would lose its place."""
    straight = take(stream(), 20)
    taken = []
    state = stream().state_dict()
    for _ in range(10):
        part = stream()
        part.load_state_dict(state)
        taken += take(part, 2)
        state = part.state_dict()
    assert taken == straight


def test_the_state_does_not_run_ahead_with_the_workers(stream):
    """Without it, batches that workers had loaded but nobody saw would be skipped."""
    one, other = stream(num_workers=0), stream(num_workers=2)
    take(one, 3)
    take(other, 3)
    assert one.state_dict() == other.state_dict()


def test_a_resume_with_another_batch_size_or_ranks_goes_on_at_the_same_row(stream):
    """Without it, a run could not move to a machine with more GPUs."""
    first = stream()
    head = take(first, 5)
    rows = [row for batch in take(stream(), 15) for row in batch]
    ranks = [stream(batch_size=3, rank=rank, world_size=2) for rank in (0, 1)]
    for rank in ranks:
        rank.load_state_dict(first.state_dict())
    steps = zip(*([numbers(batch) for batch in rank] for rank in ranks), strict=True)
    tail = [row for step in steps for batch in step for row in batch]
    assert [row for batch in head for row in batch] + tail == rows[: 20 + len(tail)]
    assert len(tail) == 36  # six steps of 2 x 3 of the 41 rows left


def test_the_state_is_plain(stream, tmp_path):
    """Without it, a checkpoint would not load with weights_only (pitfalls row 24)."""
    first = stream()
    take(first, 3)
    torch.save(first.state_dict(), tmp_path / "state")
    assert torch.load(tmp_path / "state", weights_only=True) == first.state_dict()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fingerprint": "g"}, "trained on data f, this directory holds g"),
        ({"seed": 4}, "shuffles its data by seed 3, not 4"),
    ],
)
def test_a_state_of_other_data_is_refused(stream, changes, message):
    """Without it, a run would silently go on with other text or in another order."""
    with pytest.raises(UserError, match=message):
        stream(**changes).load_state_dict(stream().state_dict())


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_plan_is_read_in_its_order_by_any_number_of_workers(store, workers):
    """Without it, per-token losses could not be told apart by their place."""
    plan = [range(3), range(3, 6), range(6, 7), range(10, 12), range(20, 21)]
    planned = PlannedBatches(RowReader(store, row_length=3), plan)
    loader = torch.utils.data.DataLoader(planned, batch_size=None, num_workers=workers)
    assert [numbers(batch) for batch in loader] == [list(batch) for batch in plan]


def litdata_loader(store) -> StreamingDataLoader:
    dataset = StreamingDataset(store, item_loader=TokensLoader(3), shuffle=True, seed=3)
    return StreamingDataLoader(dataset, batch_size=4, drop_last=True)


def test_litdatas_own_loader_still_loses_its_place(store):
    """When this fails, litdata has mended it and may replace the stream of our own."""

    def epoch(loader, count):  # as the Trainer does it: stops at the last batch, not behind it
        return [batch[:, 0].tolist() for batch in islice(loader, count)]

    straight = litdata_loader(store)
    first, second = epoch(straight, 15), epoch(straight, 15)
    interrupted, resumed = litdata_loader(store), litdata_loader(store)
    head = epoch(interrupted, 7)
    resumed.load_state_dict(interrupted.state_dict())
    assert head + epoch(resumed, 8) == first
    assert epoch(resumed, 15) != second
