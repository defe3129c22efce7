"""Rows come back as they were written, as inputs and shifted targets."""

import os
import pickle

import numpy as np
import pytest
import torch

from looped.datamodules.row_reader import RowReader
from looped.datamodules.row_store import RowWriter

ROWS = np.random.default_rng(0).integers(0, 2**16, (23, 5), dtype=np.uint16)


@pytest.fixture(params=[1, 70, 2**20])
def store(request, tmp_path):
    writer = RowWriter(tmp_path / "d", row_length=5, dtype=ROWS.dtype, chunk_bytes=request.param)
    writer.write(ROWS)
    writer.close()
    return str(tmp_path / "d")


def test_any_rows_in_any_order(store):
    """Without it, a shuffled batch would hold other rows than planned."""
    numbers = [22, 0, 7, 7, 13]
    inputs, targets = RowReader(store, row_length=5).read(numbers)
    expected = torch.from_numpy(ROWS[numbers].astype(np.int64))
    assert torch.equal(inputs, expected[:, :-1])
    assert torch.equal(targets, expected[:, 1:])


def test_inputs_and_targets_are_int64_views_of_one_tensor(store):
    """Without it, cross-entropy would refuse the type (row 64), or every batch be copied twice."""
    inputs, targets = RowReader(store, row_length=5).read(range(4))
    assert inputs.dtype == targets.dtype == torch.int64
    assert inputs.shape == targets.shape == (4, 4)
    assert inputs.untyped_storage().data_ptr() == targets.untyped_storage().data_ptr()
    assert inputs.untyped_storage().nbytes() == 4 * 5 * 8


def test_a_used_reader_can_be_sent_and_forked(store):
    """Without it, loader processes would share litdata's memory maps and threads."""
    reader = RowReader(store, row_length=5)
    before = reader.read([3])[0]
    assert torch.equal(pickle.loads(pickle.dumps(reader)).read([3])[0], before)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if torch.equal(reader.read([3])[0], before) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_local_rows_are_not_copied_to_a_cache(store, tmp_path, monkeypatch):
    """Without it, litdata would fill up to 75 % of the free disk (pitfalls row 63)."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    RowReader(store, row_length=5).read(range(23))
    assert not (tmp_path / "home").exists()
