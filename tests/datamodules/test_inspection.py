"""A look into a directory shows its rows and finds what was changed."""

import dataclasses
import shutil

import pytest

from looped.datamodules.inspection import RowText, inspect_prepared
from looped.datamodules.prepared_data import read_prepared
from looped.errors import UserError

from .conftest import SEQ_LEN


def test_rows_are_decoded_from_their_bos_on(prepared):
    """Without it, a look would not show what is trained on."""
    data, rows = inspect_prepared(prepared, rows_per_split=2)
    assert data == read_prepared(prepared)
    assert [(row.split, row.number) for row in rows] == [
        ("train", 0),
        ("train", 1),
        ("val", 0),
        ("val", 1),
    ]
    assert rows[0].text.startswith("<|bos|>")


def test_more_rows_than_there_are_is_all_of_them(prepared):
    """Without it, a small directory could not be looked at."""
    data, rows = inspect_prepared(prepared, rows_per_split=10**6)
    assert len(rows) == data.train.rows + data.val.rows


def test_without_a_tokenizer_the_ids_are_shown(prepared, tmp_path):
    """Without it, packed rows without a tokenizer could not be looked at."""
    copy = shutil.copytree(prepared, tmp_path / "data")
    data = dataclasses.replace(read_prepared(copy), tokenizer=None, tokenizer_sha256=None)
    data.write(copy)
    _, (row, *_) = inspect_prepared(copy, rows_per_split=1)
    assert row == RowText("train", 0, row.text)
    assert row.text.startswith("[0, ")
    assert row.text.count(",") == SEQ_LEN


def test_damage_is_found(prepared, tmp_path):
    """Without it, 'whole' would be said of anything."""
    copy = shutil.copytree(prepared, tmp_path / "data")
    (copy / "val" / "chunk-0-0.bin").unlink()
    with pytest.raises(UserError, match=r"val/chunk-0-0.bin is missing"):
        inspect_prepared(copy, rows_per_split=1)
