"""A Hugging Face dataset is streamed; a local directory of its layout stands for the hub."""

import json
from pathlib import Path

import pytest

from looped.datamodules.hub_source import PRESETS, HubDataset, hub_source
from looped.datamodules.sources import SourceRequest
from looped.errors import UserError

datasets = pytest.importorskip("datasets")


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    """Two shards of Parquet files, laid out like FineWeb-Edu."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    directory = tmp_path / "dataset"
    (directory / "data").mkdir(parents=True)
    for shard in range(2):
        rows = [{"text": f"shard {shard} row {row}", "score": 3.5} for row in range(3)]
        path = directory / "data" / f"train-0000{shard}-of-00002.parquet"
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return str(directory)


def test_rows_are_streamed_in_order(dataset):
    """Without it, the whole dataset would be downloaded, or its order be another each time."""
    source = hub_source(SourceRequest(name="hub", dataset=dataset))
    expected = [f"shard {shard} row {row}" for shard in range(2) for row in range(3)]
    for _ in range(2):
        assert [document.text for document in source.documents()] == expected


def test_a_missing_column_is_named_with_those_there(dataset):
    """Without it, a KeyError would reach the user."""
    source = hub_source(SourceRequest(name="hub", dataset=dataset, column="body"))
    with pytest.raises(UserError, match=r"no column 'body' in dataset .*: it has text, score"):
        list(source.documents())


def test_a_dataset_that_is_not_there_is_one_line(tmp_path):
    """Without it, a typing error would be a page of the HTTP client's traceback."""
    with pytest.raises(UserError, match="cannot open dataset"):
        list(HubDataset(str(tmp_path / "none"), subset=None, column="text").documents())


def test_presets_stand_for_their_dataset(monkeypatch):
    """Without it, `--dataset fineweb-edu` would look for a dataset of that name."""
    asked = []

    def load(*args, **options):
        asked.append((args, options))
        return [{"text": "x"}]

    monkeypatch.setattr(datasets, "load_dataset", load)
    source = hub_source(SourceRequest(name="hub", dataset="fineweb-edu"))
    assert [document.text for document in source.documents()] == ["x"]
    assert asked == [(PRESETS["fineweb-edu"], {"split": "train", "streaming": True})]
    assert source.name == "HuggingFaceFW/fineweb-edu:sample-10BT"
    assert json.dumps(source.inventory()) == "{}"


def test_a_local_directory_is_known_by_its_content(dataset):
    """Without it, data of the old rows would be 'already complete' after an edit."""
    source = hub_source(SourceRequest(name="hub", dataset=dataset))
    before = source.inventory()
    assert source.inventory() == before
    shard = Path(dataset, "data", "train-00000-of-00002.parquet")
    shard.write_bytes(shard.read_bytes().swapcase())
    after = source.inventory()
    assert (before["files"], before["bytes"]) == (after["files"], after["bytes"])
    assert before != after


@pytest.mark.parametrize("cell", [0, 3, ["x"], {"a": "x"}])
def test_a_column_of_something_else_is_refused(monkeypatch, cell):
    """Without it, numbers would be a traceback, and 0 an empty document."""
    monkeypatch.setattr(datasets, "load_dataset", lambda *a, **k: [{"text": None}, {"text": cell}])
    documents = HubDataset("d", subset=None, column="text").documents()
    assert next(documents).text == ""
    with pytest.raises(UserError, match=f"column 'text' holds {type(cell).__name__}, not text"):
        next(documents)


def test_a_stream_that_breaks_is_one_line(monkeypatch):
    """Without it, a lost connection would be a traceback or be told as a full disk."""

    def rows(*args, **options):
        yield {"text": "x"}
        raise ConnectionError("reset by peer\nand more")

    monkeypatch.setattr(datasets, "load_dataset", rows)
    with pytest.raises(UserError, match=r"cannot read dataset d: reset by peer$"):
        list(HubDataset("d", subset=None, column="text").documents())
