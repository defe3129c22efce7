"""Rows of tables become documents, from the column that was named."""

import gzip
import json

import pytest

from looped.datamodules.sources import Document, SourceRequest
from looped.datamodules.table_sources import jsonl_source, parquet_source
from looped.errors import UserError

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

TEXTS = ["one", "zwei é", "", "three\nlines\n"]


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_parquet(path, rows):
    parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=2)


def request_for(path, **changes) -> SourceRequest:
    return SourceRequest(name="table", paths=(str(path),), **changes)


FORMATS = [(write_jsonl, jsonl_source), (write_parquet, parquet_source)]


@pytest.mark.parametrize(("write", "open_"), FORMATS)
def test_each_row_is_a_document(tmp_path, write, open_):
    """Without it, rows would be lost, joined or out of order."""
    write(tmp_path / "a", [{"id": n, "text": text} for n, text in enumerate(TEXTS)])
    source = open_(request_for(tmp_path / "a"))
    for _ in range(2):
        assert [document.text for document in source.documents()] == TEXTS


@pytest.mark.parametrize(("write", "open_"), FORMATS)
def test_the_column_is_the_one_named(tmp_path, write, open_):
    """Without it, the title would be trained on instead of the body."""
    write(tmp_path / "a", [{"text": "no", "body": "yes"}])
    source = open_(request_for(tmp_path / "a", column="body"))
    assert [document.text for document in source.documents()] == ["yes"]


@pytest.mark.parametrize(("write", "open_"), FORMATS)
def test_validation_files_are_held_out(tmp_path, write, open_):
    """Without it, named shards would be trained on."""
    write(tmp_path / "train-0", [{"text": "a"}])
    write(tmp_path / "val-0", [{"text": "b"}])
    source = open_(request_for(tmp_path / "*-0", val_paths=(str(tmp_path / "val-*"),)))
    assert list(source.documents()) == [Document("b", True), Document("a", False)]


@pytest.mark.parametrize(("write", "open_"), FORMATS)
def test_a_missing_column_is_named_with_those_there(tmp_path, write, open_):
    """Without it, the user would have to look into the file to learn the right name."""
    write(tmp_path / "a", [{"id": 1, "content": "x"}])
    with pytest.raises(UserError, match=r"no column 'text' in .*a.*: it has id, content; name"):
        list(open_(request_for(tmp_path / "a")).documents())


@pytest.mark.parametrize(("write", "open_"), FORMATS)
def test_a_column_of_something_else_is_refused(tmp_path, write, open_):
    """Without it, numbers would be a traceback in the tokenizer."""
    write(tmp_path / "a", [{"text": 3}])
    with pytest.raises(UserError, match="column 'text' holds int, not text"):
        list(open_(request_for(tmp_path / "a")).documents())


@pytest.mark.parametrize(("write", "open_"), FORMATS)
def test_null_is_an_empty_document(tmp_path, write, open_):
    """Without it, one missing text would stop a preparation of hours."""
    write(tmp_path / "a", [{"text": "x"}, {"text": None}])
    assert [d.text for d in open_(request_for(tmp_path / "a")).documents()] == ["x", ""]


def test_broken_lines_are_skipped_and_counted(tmp_path):
    """Without it, the cut last line of a download would stop everything."""
    (tmp_path / "a").write_bytes(b'{"text": "x"}\n\n{"text": "caf\xe9"}\n{"text": "cu')
    source = jsonl_source(request_for(tmp_path / "a"))
    for _ in range(2):
        assert [document.text for document in source.documents()] == ["x"]
        assert source.undecodable == 2


def test_a_file_without_any_json_is_an_error(tmp_path):
    """Without it, a text file given as JSON lines would be 'empty'."""
    (tmp_path / "a").write_text("just text\n")
    with pytest.raises(UserError, match="no line of the 1 files is JSON"):
        list(jsonl_source(request_for(tmp_path / "a")).documents())


def test_a_line_that_is_no_object_is_refused(tmp_path):
    """Without it, a list of strings would be a traceback."""
    (tmp_path / "a").write_text('"text"\n')
    with pytest.raises(UserError, match=r"no column 'text' in .*line 1: it has no columns at all"):
        list(jsonl_source(request_for(tmp_path / "a")).documents())


def test_a_file_that_is_not_parquet_is_one_line(tmp_path):
    """Without it, a CSV file given as Parquet would be a traceback of Arrow."""
    (tmp_path / "a").write_text("text\nx\n")
    with pytest.raises(UserError, match=r"a is not a Parquet file"):
        list(parquet_source(request_for(tmp_path / "a")).documents())


def test_a_truncated_gzip_file_is_one_line(tmp_path):
    """Without it, a download that broke off would be a traceback."""
    whole = gzip.compress(b'{"text": "some text"}\n' * 5000)
    (tmp_path / "a.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"cannot read .*a.jsonl.gz: Compressed file ended"):
        list(jsonl_source(request_for(tmp_path / "a.jsonl.gz")).documents())


def test_a_deeply_nested_line_is_skipped_and_counted(tmp_path):
    """Without it, one line of brackets would be a traceback of the JSON reader."""
    deep = "[" * 100_000 + "]" * 100_000
    (tmp_path / "a").write_text('{"text": "x"}\n{"text": ' + deep + "}\n")
    source = jsonl_source(request_for(tmp_path / "a"))
    assert [document.text for document in source.documents()] == ["x"]
    assert source.undecodable == 1


def test_a_damaged_parquet_file_is_blamed_itself(tmp_path):
    """Without it, the message would say that the output cannot be written."""
    write_parquet(tmp_path / "a", [{"text": f"{n} " * 500} for n in range(9)])
    content = bytearray((tmp_path / "a").read_bytes())
    content[40:200] = b"\xff" * 160
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(UserError, match=r"cannot read .*/a: ") as caught:
        list(parquet_source(request_for(tmp_path / "a")).documents())
    assert "\n" not in str(caught.value)
