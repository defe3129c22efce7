"""Documents of one source go through split, tokenizer and packer into their own rows."""

import dataclasses

import pytest

from looped.datamodules.document_rows import DocumentRows
from looped.datamodules.inspection import inspect_prepared
from looped.datamodules.prepared_data import read_prepared
from looped.datamodules.sources import Document
from looped.errors import UserError


class Listed:
    """A source that is a list."""

    name = "listed"
    undecodable = 0

    def __init__(self, documents):
        self._documents = documents

    def documents(self):
        yield from self._documents

    def size_bytes(self):
        return None

    def inventory(self):
        return {"documents": len(self._documents)}


SOURCE = Listed(
    [
        Document("xyz", held_out=True),
        Document("abc", held_out=False),
        Document("xyz", held_out=False),
        Document("", held_out=False),
        Document("defgh", held_out=False),
    ]
)
ROWS = DocumentRows(
    source=SOURCE,
    seq_len=3,
    tokenizer="bytes",
    bos=None,
    packing="concat",
    seed=0,
    val_fraction=0.5,
    max_documents=None,
)


def test_each_side_gets_its_rows_and_counts(tmp_path):
    """Without it, a document could end up in the other split, or the counts be another's."""
    data = ROWS.write(tmp_path, settings={"asked": "for"}, progress=False)
    assert data == read_prepared(tmp_path)
    assert data.settings == {"asked": "for"}
    assert (data.source, data.tokenizer, data.vocab_size) == ("listed", "bytes", 257)
    assert data.skipped == {"empty": 1, "duplicates": 1, "undecodable": 0}
    train, val = data.train, data.val
    assert (train.documents, train.bytes, train.tokens, train.cropped) == (2, 8, 10, 2)
    assert (val.documents, val.bytes, val.tokens, val.cropped) == (1, 3, 4, 0)
    _, rows = inspect_prepared(tmp_path, rows_per_split=9)
    assert [row.text for row in rows] == ["<|bos|>abc", "<|bos|>def", "<|bos|>xyz"]


def test_the_source_is_named_in_the_inventory():
    """Without it, another source with equal numbers would pass for the same data."""
    assert ROWS.inventory() == {"name": "listed", "documents": 5}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"packing": "x"}, "unknown packing 'x'"),
        ({"val_fraction": 1.0}, r"val_fraction 1\.0"),
        ({"seed": 2**70}, "seed 1180591620717411303424"),
        ({"max_documents": -1}, "max_documents -1"),
        ({"tokenizer": "bpe:1"}, "at least 257"),
        ({"bos": "<s>"}, "tokenizer bytes begins documents with its own .*: leave out --bos <s>"),
        ({"bos": "<s>", "tokenizer": "bpe:300"}, "tokenizer bpe:300 begins documents with its"),
    ],
)
def test_a_value_that_cannot_be_is_refused_before_anything_is_read(changes, message):
    """Without it, a mistake would show after minutes of reading."""
    with pytest.raises(UserError, match=message):
        dataclasses.replace(ROWS, **changes)
