"""Every token is in a row or counted as cropped."""

import numpy as np
import pytest

from looped.datamodules.packing import PACKERS, BestFitPacker, ConcatPacker

BOS = 99


def pack(packer, documents) -> np.ndarray:
    blocks = [block for d in documents for block in packer.add(np.array(d, dtype=np.uint32))]
    blocks += packer.finish()
    return np.concatenate(blocks) if blocks else np.empty((0, 0))


def test_concat_is_one_line_cut_into_rows():
    """Without it, tokens would be lost at the border of a row or out of order."""
    packer = ConcatPacker(row_length=4, bos=BOS)
    rows = pack(packer, [[1, 2, 3, 4, 5, 6], [], [7], [8, 9, 10]])
    assert rows.tolist() == [[BOS, 1, 2, 3], [4, 5, 6, BOS], [BOS, 7, BOS, 8]]
    assert packer.counts.cropped == 2


def some_documents(seed, count=100) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.integers(0, 50, random.integers(0, 40)) for _ in range(count)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("packing", PACKERS)
def test_counts_add_up(packing, seed):
    """Without it, lost tokens would go unnoticed."""
    documents = some_documents(seed)
    packer = PACKERS[packing](row_length=17, bos=BOS)
    rows = pack(packer, documents)
    counts = packer.counts
    assert counts.documents == 100
    assert counts.tokens == 100 + sum(len(d) for d in documents)
    assert counts.rows == len(rows)
    assert counts.tokens == counts.rows * 17 + counts.cropped


@pytest.mark.parametrize("seed", range(5))
def test_concat_keeps_the_order_of_all_tokens(seed):
    """Without it, a row could continue in another document."""
    documents = some_documents(seed)
    rows = pack(ConcatPacker(row_length=17, bos=BOS), documents)
    line = np.concatenate([x for d in documents for x in ([BOS], d)])
    assert (rows.reshape(-1) == line[: rows.size]).all()


def test_best_fit_by_hand():
    """Without it, the rule itself (longest that fits, else crop the shortest) could be another."""
    packer = BestFitPacker(row_length=6, bos=BOS, buffer_documents=100)
    rows = pack(packer, [[1, 1], [2, 2, 2, 2], [3] * 9, [4, 4]])
    assert rows.tolist() == [
        [BOS, 2, 2, 2, 2, BOS],  # the longest that fits, then the shortest (oldest) cropped
        [BOS, 4, 4, BOS, 3, 3],
    ]
    assert packer.counts.cropped == 2 + 7


def best_fit_by_search(documents, row_length, buffer_documents) -> list[list[int]]:
    """The rule as it is told: look at every buffered document each time."""
    waiting = [[BOS, *d] for d in documents]
    buffer, rows, row = [], [], []
    while True:
        while waiting and len(buffer) < buffer_documents:
            buffer.append(waiting.pop(0))
        if not buffer:
            return rows
        room = row_length - len(row)
        fitting = [d for d in buffer if len(d) <= room]
        best = max(fitting, key=len) if fitting else min(buffer, key=len)
        buffer = [d for d in buffer if d is not best]
        row += best[:room]
        if len(row) == row_length:
            rows.append(row)
            row = []


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("buffer_documents", [1, 7, 1000])
def test_best_fit_is_the_plain_search(seed, buffer_documents):
    """Without it, the binary search could choose another document than the rule says."""
    documents = some_documents(seed, 300)
    packer = BestFitPacker(row_length=25, bos=BOS, buffer_documents=buffer_documents)
    rows = pack(packer, documents)
    assert rows.tolist() == best_fit_by_search(documents, 25, buffer_documents)
    assert (rows[:, 0] == BOS).all()
