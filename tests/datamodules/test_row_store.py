"""What was written is what is on disk, in a form that litdata itself reads."""

import hashlib
import json
import multiprocessing
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from litdata import StreamingDataset
from litdata.streaming.item_loader import TokensLoader
from litdata.streaming.writer import BinaryWriter

from looped.datamodules.row_store import (
    RowStoreError,
    RowWriter,
    count_rows,
    hash_rows,
    token_type,
)

ROW = 5


def some_rows(count: int, dtype="uint16") -> np.ndarray:
    high = np.iinfo(dtype).max
    return np.random.default_rng(0).integers(0, high, (count, ROW), endpoint=True, dtype=dtype)


def write(directory, rows, *, blocks=3, chunk_bytes=2**20):
    writer = RowWriter(directory, row_length=ROW, dtype=rows.dtype, chunk_bytes=chunk_bytes)
    for block in np.array_split(rows.astype(np.uint32), blocks):
        writer.write(block)
    return writer.close()


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
@pytest.mark.parametrize("chunk_bytes", [1, 70, 2**20])
def test_litdata_reads_every_row_and_token(tmp_path, dtype, chunk_bytes):
    """Without it, chunk tails would be dropped: 2 to 39 % of the tokens (pitfalls row 53)."""
    rows = some_rows(23, dtype)
    write(tmp_path / "d", rows, chunk_bytes=chunk_bytes)
    dataset = StreamingDataset(str(tmp_path / "d"), item_loader=TokensLoader(ROW))
    assert len(dataset) == 23
    assert np.array_equal(np.stack(list(dataset)), rows)


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_the_files_are_those_of_litdatas_own_writer(tmp_path, dtype):
    """Without it, a change of litdata's format could make new data unreadable one day."""
    rows = some_rows(23, dtype)
    write(tmp_path / "ours", rows, chunk_bytes=7 * rows[0].nbytes)
    writer = BinaryWriter(
        str(tmp_path / "theirs"), chunk_size=7 * ROW, item_loader=TokensLoader(ROW)
    )
    for number, first in enumerate(range(0, 23, 7)):
        writer.add_item(number, rows[first : first + 7].reshape(-1))
    writer.done()
    theirs = json.loads(Path(writer.write_chunks_index()).read_text())
    ours = json.loads((tmp_path / "ours" / "index.json").read_text())
    ours.pop("updated_at")
    assert ours == theirs
    for chunk in ours["chunks"]:
        name = chunk["filename"]
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes()


def test_writing_does_not_need_torch():
    """Without it, a preparation would take half a gigabyte more."""
    program = (
        "import sys, looped.datamodules.prepare, looped.datamodules.inspection;"
        "assert not {'torch', 'litdata'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_count_and_hash_are_those_of_the_tokens(tmp_path):
    """Without it, a directory could be declared complete without its rows."""
    rows = some_rows(23)
    stored = write(tmp_path / "d", rows, chunk_bytes=7 * ROW * 2)
    assert (stored.rows, stored.rows_per_chunk) == (23, 7)
    assert stored.sha256 == hashlib.sha256(rows.tobytes()).hexdigest()
    assert hash_rows(tmp_path / "d", row_length=ROW, dtype="uint16") == stored.sha256
    assert count_rows(tmp_path / "d", row_length=ROW, dtype="uint16") == 23


def test_the_hash_does_not_depend_on_blocks_or_chunks(tmp_path):
    """Without it, a change of the chunk size would look like other data."""
    rows = some_rows(40)
    one = write(tmp_path / "one", rows, blocks=1)
    other = write(tmp_path / "other", rows, blocks=13, chunk_bytes=30)
    assert one.sha256 == other.sha256


def test_no_index_before_the_end(tmp_path):
    """Without it, an interrupted writer would leave something that opens (pitfalls row 58)."""
    writer = RowWriter(tmp_path / "d", row_length=ROW, dtype="uint16", chunk_bytes=20)
    writer.write(some_rows(9))
    with pytest.raises(RowStoreError, match=r"d/index.json is missing"):
        count_rows(tmp_path / "d", row_length=ROW, dtype="uint16")


def test_a_store_without_rows_is_refused(tmp_path):
    """Without it, training on it would 'succeed' after zero steps (pitfalls row 55)."""
    with pytest.raises(RowStoreError, match="no row"):
        RowWriter(tmp_path / "d", row_length=ROW, dtype="uint16").close()


def test_writing_leaves_the_start_method_and_ignores_ranks(tmp_path, monkeypatch):
    """Without it, later loader processes would be spawned (pitfalls row 59), or torchrun wait."""
    monkeypatch.setenv("WORLD_SIZE", "4")
    before = multiprocessing.get_start_method(allow_none=True)
    write(tmp_path / "d", some_rows(3))
    assert multiprocessing.get_start_method(allow_none=True) == before


def damage_missing(directory):
    (directory / "chunk-0-1.bin").unlink()


def damage_short(directory):
    path = directory / "chunk-0-1.bin"
    path.write_bytes(path.read_bytes()[:-2])


def damage_foreign(directory):
    (directory / "index.json").write_text(json.dumps({"chunks": [{"filename": "x"}]}))


def damage_no_dimension(directory):
    chunks = [{"filename": "chunk-0-0.bin", "dim": None}]
    (directory / "index.json").write_text(json.dumps({"chunks": chunks}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_missing, "d/chunk-0-1.bin is missing"),
        (damage_short, "d/chunk-0-1.bin is not of the size"),
        (damage_foreign, "d/index.json is not a litdata index"),
        (damage_no_dimension, "does not hold rows of 5 tokens"),
    ],
)
def test_damage_is_named(tmp_path, damage, message):
    """Without it, a foreign directory would end in litdata's `NoneType // int` (row 56)."""
    write(tmp_path / "d", some_rows(23), chunk_bytes=70)
    damage(tmp_path / "d")
    with pytest.raises(RowStoreError, match=message):
        count_rows(tmp_path / "d", row_length=ROW, dtype="uint16")


def test_rows_of_another_length_are_refused(tmp_path):
    """Without it, rows would be read across their borders."""
    write(tmp_path / "d", some_rows(23))
    with pytest.raises(RowStoreError, match="does not hold rows of 7 tokens"):
        count_rows(tmp_path / "d", row_length=7, dtype="uint16")


@pytest.mark.parametrize(("vocab_size", "dtype"), [(2**16, "uint16"), (2**16 + 1, "uint32")])
def test_the_stored_type_holds_every_id(vocab_size, dtype):
    """Without it, id 65,536 would become 0."""
    assert np.dtype(token_type(vocab_size)) == dtype
