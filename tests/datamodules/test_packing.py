"""Every token is in a row or counted as cropped."""

import numpy as np
import pytest

from looped.datamodules.packing import ConcatPacker

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


@pytest.mark.parametrize("seed", range(5))
def test_counts_add_up(seed):
    """Without it, lost tokens would go unnoticed."""
    random = np.random.default_rng(seed)
    documents = [random.integers(0, 50, random.integers(0, 40)) for _ in range(100)]
    packer = ConcatPacker(row_length=17, bos=BOS)
    rows = pack(packer, documents)
    counts = packer.counts
    assert counts.documents == 100
    assert counts.tokens == 100 + sum(len(d) for d in documents)
    assert counts.rows == len(rows)
    assert counts.tokens == counts.rows * 17 + counts.cropped
    line = np.concatenate([x for d in documents for x in ([BOS], d)])
    assert (rows.reshape(-1) == line[: rows.size]).all()
