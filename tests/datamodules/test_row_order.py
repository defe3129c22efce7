"""Every row has its turn, once, on one rank, in an order that depends on nothing else."""

import numpy as np
import pytest

from looped.datamodules.row_order import EpochOrder, EpochShare, deal_in_order
from looped.errors import UserError


def whole(order) -> list[int]:
    return order.between(0, order.rows).tolist()


def an_order(rows=100, *, rows_per_chunk=30, seed=0, epoch=0) -> EpochOrder:
    return EpochOrder(rows, rows_per_chunk=rows_per_chunk, seed=seed, epoch=epoch)


@pytest.mark.parametrize("rows_per_chunk", [1, 7, 30, 99, 100, 1000])
def test_an_epoch_has_every_row_once(rows_per_chunk):
    """Without it, rows would be repeated or never trained on."""
    assert sorted(whole(an_order(rows_per_chunk=rows_per_chunk))) == list(range(100))


def test_the_order_follows_from_seed_and_epoch():
    """Without it, runs could not be repeated, or every epoch would look the same."""
    first = whole(an_order())
    assert first == whole(an_order())
    assert first != whole(an_order(epoch=1)) != whole(an_order(epoch=2))
    assert first != whole(an_order(seed=1))
    assert whole(an_order(seed=1, epoch=0)) != whole(an_order(seed=0, epoch=1))


def test_chunks_are_read_one_after_the_other():
    """Without it, a remote store would fetch a chunk for every row."""
    chunks = np.array(whole(an_order())) // 30
    assert np.count_nonzero(np.diff(chunks)) == 3
    assert any(whole(an_order(epoch=epoch))[0] >= 30 for epoch in range(5))


def test_one_chunk_is_shuffled_as_a_whole():
    """Without it, neighbouring rows would stay neighbours: litdata shuffles blocks of 256."""
    rows = np.array(whole(an_order(10_000, rows_per_chunk=10_000)))
    assert np.abs(np.diff(rows)).mean() == pytest.approx(10_000 / 3, rel=0.05)


def test_any_part_of_the_order_is_that_part():
    """Without it, a resumed epoch would go on in another order."""
    order, rows = an_order(), whole(an_order())
    for start, stop in [(0, 1), (5, 45), (29, 31), (60, 100), (99, 100)]:
        assert order.between(start, stop).tolist() == rows[start:stop]


def shares(world_size, *, first=0, batch_size=4, rows=100):
    return [
        EpochShare(
            an_order(rows), first=first, batch_size=batch_size, rank=rank, world_size=world_size
        )
        for rank in range(world_size)
    ]


@pytest.mark.parametrize("world_size", [1, 2, 3, 7])
def test_ranks_share_an_epoch_without_overlap(world_size):
    """Without it, ranks would train on the same rows or wait for each other."""
    ranks = shares(world_size)
    (length,) = {len(share) for share in ranks}
    assert length == 100 // (4 * world_size)
    steps = [np.concatenate([share[step] for share in ranks]) for step in range(length)]
    used = np.concatenate(steps)
    assert used.tolist() == whole(an_order())[: len(used)]  # also: the same rows per step


def test_the_rest_of_an_epoch_goes_on_at_the_next_row():
    """Without it, a resume with other ranks or batch size would repeat or skip rows."""
    (before,) = shares(1, batch_size=5)
    rows = [before[step] for step in range(3)]
    after = shares(2, first=15, batch_size=4)
    rows += [share[step] for step in range(len(after[0])) for share in after]
    assert np.concatenate(rows).tolist() == whole(an_order())[: 15 + 80]


@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("batch_size", [2, 3, 8])
@pytest.mark.parametrize("rows", [8, 9, 16, 17, 23, 64, 65, 100, 101])
def test_evaluation_deals_each_row_once_and_equally_many_batches(rows, batch_size, world_size):
    """Without it, validation on several ranks would be inexact or hang (pitfalls row 51)."""
    ranks = [
        deal_in_order(rows, batch_size=batch_size, rank=rank, world_size=world_size)
        for rank in range(world_size)
    ]
    assert len({len(batches) for batches in ranks}) == 1
    assert all(0 < len(batch) <= batch_size for batches in ranks for batch in batches)
    in_turn = [row for step in zip(*ranks, strict=True) for batch in step for row in batch]
    assert in_turn == list(range(rows))


def test_one_process_evaluates_full_batches_and_a_ragged_last():
    """Without it, the batches would be smaller than asked for, or the last rows missing."""
    batches = deal_in_order(10, batch_size=4, rank=0, world_size=1)
    assert batches == [range(4), range(4, 8), range(8, 10)]


@pytest.mark.parametrize(("rows", "batch_size"), [(3, 8), (5, 1)])
def test_too_few_rows_for_all_ranks_are_refused(rows, batch_size):
    """Without it, a rank without a batch would hang the others."""
    with pytest.raises(UserError, match=f"{rows} rows cannot be dealt to 4 processes"):
        deal_in_order(rows, batch_size=batch_size, rank=0, world_size=4)
