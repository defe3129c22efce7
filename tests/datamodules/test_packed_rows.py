"""Rows in the paper's published layout are taken over one for one."""

import json

import numpy as np
import pytest
import torch
from litdata import StreamingDataset
from litdata.streaming.item_loader import TokensLoader

from looped.datamodules.prepare import prepare
from looped.datamodules.token_data import TokenDataModule
from looped.datamodules.tokenizer import ByteTokenizer
from looped.errors import UserError

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

ROW = 9
META = {"row_capacity": ROW, "vocab_size": 257, "bos_token_id": 256, "note": "ignored"}


def some_rows(count, seed) -> np.ndarray:
    rows = np.random.default_rng(seed).integers(0, 256, (count, ROW), dtype=np.uint16)
    rows[:, 0] = 256
    return rows


SHARDS = {
    "train-00000": some_rows(300, 0),
    "train-00001": some_rows(40, 1),
    "val-00000": some_rows(30, 2),
}


def write_shard(path, rows, *, kind=None):
    kind = kind or pyarrow.list_(pyarrow.uint16())
    cells = pyarrow.array([row.tolist() for row in rows], type=kind)
    parquet.write_table(pyarrow.table({"tokens": cells}), path, row_group_size=100)


@pytest.fixture(params=["list", "fixed"])
def packed(request, tmp_path):
    kind = pyarrow.list_(pyarrow.uint16(), ROW if request.param == "fixed" else -1)
    directory = tmp_path / "packed"
    directory.mkdir()
    for name, rows in SHARDS.items():
        write_shard(directory / f"{name}.parquet", rows, kind=kind)
    for split in ("train", "val"):
        (directory / f"meta_{split}.json").write_text(json.dumps(META))
    return directory


def take_over(packed, **changes):
    settings = {"source": "packed-parquet", "paths": [str(packed)], "out": packed.parent / "data"}
    return prepare(**(settings | changes))


def test_every_row_is_taken_over_in_order(packed):
    """Without it, a run on the paper's data would see other rows than the paper's runs."""
    summary = take_over(packed)
    expected = {
        "train": np.concatenate([SHARDS["train-00000"], SHARDS["train-00001"]]),
        "val": SHARDS["val-00000"],
    }
    for split, rows in expected.items():
        stored = StreamingDataset(str(summary.out / split), item_loader=TokensLoader(ROW))
        assert np.array_equal(np.stack(list(stored)), rows)
    data = summary.data
    assert (data.seq_len, data.vocab_size, data.bos) == (ROW - 1, 257, 256)
    assert (data.train.documents, data.train.tokens, data.train.cropped) == (340, 340 * ROW, 0)


def test_without_a_tokenizer_the_bytes_are_unknown(packed):
    """Without it, the data could not be used at all, or bits per byte be made up."""
    data = TokenDataModule(str(take_over(packed).out), batch_size=4)
    data.setup("fit")
    assert torch.equal(data.token_bytes, torch.zeros(257, dtype=torch.int64))
    assert data.describe()["tokenizer"] is None
    assert next(iter(data.train_dataloader()))[0].shape == (4, ROW - 1)


def test_with_its_tokenizer_the_bytes_are_known(packed):
    """Without it, bits per byte could not be compared with other data."""
    summary = take_over(packed, tokenizer="bytes")
    data = TokenDataModule(str(summary.out), batch_size=4)
    data.setup("fit")
    assert data.token_bytes.tolist() == ByteTokenizer().token_bytes().tolist()
    assert summary.data.train.bytes == 340 * (ROW - 1)


def test_again_is_already_complete(packed):
    """Without it, gigabytes would be copied again."""
    take_over(packed)
    assert take_over(packed).already_complete


@pytest.mark.parametrize("name", ["meta_train.json", "val-00000.parquet"])
def test_rows_changed_in_place_are_noticed(packed, name):
    """Without it, rows exchanged for others of equal size would be 'already complete'."""
    take_over(packed)
    content = (packed / name).read_bytes()
    (packed / name).write_bytes(content.swapcase())
    with pytest.raises(UserError, match="was prepared with inventory"):
        take_over(packed)


def remove_meta(packed):
    (packed / "meta_val.json").unlink()


def disagree(packed):
    (packed / "meta_val.json").write_text(json.dumps(META | {"row_capacity": 5}))


def lack_key(packed):
    (packed / "meta_train.json").write_text("{}")


def no_object(packed):
    (packed / "meta_train.json").write_text("[]")


def not_json(packed):
    (packed / "meta_train.json").write_text("x")


def short_row(packed):
    write_shard(packed / "val-00000.parquet", [np.arange(ROW), np.arange(ROW - 1)])


def large_token(packed):
    write_shard(packed / "val-00000.parquet", [np.full(ROW, 300)])


def no_column(packed):
    parquet.write_table(pyarrow.table({"ids": [[1]]}), packed / "train-00000.parquet")


def no_rows(packed):
    write_shard(packed / "val-00000.parquet", [])


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (pyarrow.array([1, 2]), "holds int64: each row must be a list of whole numbers"),
        (pyarrow.array(["a"]), "holds string: each row must be"),
        (pyarrow.array([["a"] * ROW]), "holds list<.*string>: each row must be"),
        (pyarrow.array([[0.5] * ROW]), "holds list<.*double>: each row must be"),
        (pyarrow.array([[1] * ROW, None]), "holds a row that is null"),
        (pyarrow.array([[1] * ROW, None], pyarrow.list_(pyarrow.int32(), ROW)), "row that is null"),
        (pyarrow.array([[None] * ROW], pyarrow.list_(pyarrow.int32())), "holds a token that is nu"),
        (pyarrow.array([[-3] * ROW]), "holds token -3, beyond the vocabulary"),
        (
            pyarrow.array([[2**64 - 1] * ROW], pyarrow.list_(pyarrow.uint64())),
            "token 18446744073709551615, beyond",
        ),
    ],
)
def test_cells_that_are_no_rows_of_ids_are_refused(packed, cells, message):
    """Without it, they would be a traceback, or be rounded or filled in to make tokens of them."""
    parquet.write_table(pyarrow.table({"tokens": cells}), packed / "train-00001.parquet")
    with pytest.raises(UserError, match=message):
        take_over(packed)
    assert [path.name for path in packed.parent.iterdir()] == ["packed"]


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ('"row_capacity": 0', "row_capacity 0: a row holds an input and a target"),
        ('"row_capacity": 1', "row_capacity 1: a row holds an input and a target"),
        ('"vocab_size": -5', "vocab_size -5 is not between 1 and"),
        ('"vocab_size": 1000000000000000000000000000000', "vocab_size 1000.* is not between"),
        ('"bos_token_id": 257', "bos_token_id 257 is not in the vocabulary of 257"),
        ('"bos_token_id": -1', "bos_token_id -1 is not in the vocabulary"),
        ('"vocab_size": 1e400', "vocab_size inf is not a whole number"),
        ('"vocab_size": 257.5', r"vocab_size 257\.5 is not a whole number"),
        ('"vocab_size": null', "vocab_size None is not a whole number"),
    ],
)
def test_numbers_of_which_no_rows_can_be_are_refused(packed, numbers, message):
    """Without it, they would be a traceback, or data that no model can be trained on."""
    content = json.dumps(META)[:-1] + ", " + numbers + "}"  # the last of two equal keys counts
    for split in ("train", "val"):
        (packed / f"meta_{split}.json").write_text(content)
    with pytest.raises(UserError, match=message):
        take_over(packed)
    assert [path.name for path in packed.parent.iterdir()] == ["packed"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (remove_meta, "no file matches .*meta_val.json"),
        (disagree, "meta_train.json and meta_val.json in .* disagree"),
        (lack_key, "meta_train.json lacks 'row_capacity'"),
        (not_json, "meta_train.json is not a meta file"),
        (no_object, "meta_train.json is not a meta file: it holds no JSON object"),
        (short_row, "val-00000.parquet holds a row that is not of 9 tokens"),
        (large_token, "holds token 300, beyond the vocabulary of 257"),
        (no_column, "no column 'tokens' in .*: it has ids"),
        (no_rows, "the val files in .* hold no row"),
    ],
)
def test_another_layout_is_refused_with_the_reason(packed, damage, message):
    """Without it, rows would be cut in other places or tokens wrap around."""
    damage(packed)
    with pytest.raises(UserError, match=message):
        take_over(packed)
    assert [path.name for path in packed.parent.iterdir()] == ["packed"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seq_len": 16}, "hold 9 tokens: use --seq_len 8, not 16"),
        ({"paths": ["a", "b"]}, "give one --paths, not 2"),
        ({"column": "x"}, "source packed-parquet takes no column"),
        ({"val_fraction": 0.05}, "takes no val_fraction: its rows are packed already"),
        ({"packing": "concat"}, "source packed-parquet takes no packing"),
        ({"bos": "<s>"}, "source packed-parquet takes no bos"),
        ({"max_documents": 5}, "source packed-parquet takes no max_documents"),
        ({"seed": 0}, "source packed-parquet takes no seed"),
    ],
)
def test_options_that_do_not_fit_are_refused(packed, changes, message):
    """Without it, they would be ignored."""
    with pytest.raises(UserError, match=message):
        take_over(packed, **changes)


def test_another_tokenizer_is_refused(packed, tmp_path):
    """Without it, decoded rows and bits per byte would be nonsense."""
    path = tmp_path / "tokenizer.json"
    content = json.loads(ByteTokenizer().to_json())
    content["added_tokens"].append(dict(content["added_tokens"][0], id=257, content="<|pad|>"))
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"has 258 tokens, the rows in .* are of 257"):
        take_over(packed, tokenizer=str(path))
