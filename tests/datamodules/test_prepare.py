"""Text becomes rows that hold exactly its tokens; a directory is complete or not there."""

import errno
import json
import multiprocessing
import os
import subprocess
import sys

import numpy as np
import pytest
import tokenizers
from litdata import StreamingDataset
from litdata.streaming.item_loader import TokensLoader
from tokenizers import models, pre_tokenizers

from looped.datamodules import row_store
from looped.datamodules.prepared_data import read_prepared
from looped.datamodules.tokenizer import ByteTokenizer, Tokenizer
from looped.errors import UserError

from .conftest import SEQ_LEN


def stored_rows(directory, split) -> np.ndarray:
    loader = TokensLoader(SEQ_LEN + 1)
    return np.stack(list(StreamingDataset(str(directory / split), item_loader=loader)))


def stored_documents(directory, split) -> list[str]:
    """The documents that the rows spell, without the incomplete last one."""
    tokenizer = Tokenizer.from_json((directory / "tokenizer.json").read_text())
    line = stored_rows(directory, split).reshape(-1)
    pieces = np.split(line, np.flatnonzero(line == tokenizer.bos))
    assert len(pieces[0]) == 0  # the line begins with BOS
    return [tokenizer.decode(piece[1:]) for piece in pieces[1:-1]]


def test_rows_spell_the_documents_of_their_split(prepared, corpus):
    """Without it, text would be lost, repeated or in both splits."""
    texts = {path.read_text() for path in corpus.iterdir()}
    train, val = (stored_documents(prepared, split) for split in ("train", "val"))
    assert set(train) | set(val) <= texts
    assert len(set(train) | set(val)) == len(train) + len(val) >= len(texts) - 2
    data = read_prepared(prepared)
    assert data.train.documents + data.val.documents == len(texts)
    assert data.train.bytes + data.val.bytes == sum(len(text.encode()) for text in texts)


def test_counts_are_those_on_disk(prepared):
    """Without it, the printed summary would not describe the data."""
    data = read_prepared(prepared)
    for name, split in (("train", data.train), ("val", data.val)):
        assert len(stored_rows(prepared, name)) == split.rows
        assert split.tokens == split.rows * data.row_length + split.cropped


def test_the_same_settings_make_the_same_data(prepared, prepare_corpus, tmp_path):
    """Without it, a fingerprint would mean nothing."""
    again = prepare_corpus(tmp_path / "data")
    assert again.data == read_prepared(prepared)


def test_the_same_command_again_does_nothing(prepare_corpus, tmp_path):
    """Without it, `make demo` would prepare its data each time (pitfalls row 57)."""
    first = prepare_corpus(tmp_path / "data")
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "data").rglob("*")}
    second = prepare_corpus(tmp_path / "data")
    assert (first.already_complete, second.already_complete) == (False, True)
    assert second.data == first.data
    assert times == {path: path.stat().st_mtime_ns for path in (tmp_path / "data").rglob("*")}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seq_len": 8}, "seq_len 16 instead of 8"),
        ({"tokenizer": "bpe:310", "seed": 1}, "tokenizer 'bpe:300' instead of 'bpe:310', seed 0"),
    ],
)
def test_other_settings_in_a_used_directory_are_refused(prepared, prepare_corpus, changes, message):
    """Without it, a run would train on data of other settings than the command says."""
    with pytest.raises(UserError, match=message):
        prepare_corpus(prepared, **changes)


def test_changed_text_is_noticed(prepare_corpus, tmp_path):
    """Without it, new files would be ignored because the data is 'already complete'."""
    (tmp_path / "a.txt").write_text("some text " * 40)
    (tmp_path / "b.txt").write_text("other text " * 40)
    changes = {"paths": [f"{tmp_path}/*.txt"], "val_paths": [f"{tmp_path}/b.txt"]}
    changes |= {"tokenizer": "bpe:258", "seq_len": 4}
    prepare_corpus(tmp_path / "data", **changes)
    (tmp_path / "c.txt").write_text("new")
    with pytest.raises(UserError, match=r"'bytes': 840.* instead of .*'bytes': 843"):
        prepare_corpus(tmp_path / "data", **changes)


def test_text_changed_in_place_is_noticed(prepare_corpus, tmp_path):
    """Without it, an edit that keeps the size (hello to HELLO) would leave the old tokens."""
    text = tmp_path / "text"
    text.mkdir()
    for number in range(20):
        (text / f"{number}.txt").write_text(f"hello {number} " * 20)
    changes = {"paths": [f"{text}/*.txt"], "tokenizer": "bytes"}
    prepare_corpus(tmp_path / "data", **changes)
    assert prepare_corpus(tmp_path / "data", **changes).already_complete
    (text / "7.txt").write_text("HELLO 7 " * 20)
    with pytest.raises(UserError, match="was prepared with inventory"):
        prepare_corpus(tmp_path / "data", **changes)


def test_a_changed_tokenizer_file_is_noticed(prepare_corpus, prepared, tmp_path):
    """Without it, data of another tokenizer of the same name would be 'already complete'."""
    path = tmp_path / "tokenizer.json"
    path.write_text((prepared / "tokenizer.json").read_text())
    prepare_corpus(tmp_path / "data", tokenizer=str(path))
    path.write_text(ByteTokenizer().to_json())
    with pytest.raises(UserError, match="tokenizer_file"):
        prepare_corpus(tmp_path / "data", tokenizer=str(path))


@pytest.fixture
def overlap(tmp_path):
    """A hundred documents, and a validation file of the first twenty that comes later by name."""
    directory = tmp_path / "text"
    directory.mkdir()
    lines = [json.dumps({"text": f"document {number} " * 5}) + "\n" for number in range(100)]
    (directory / "t.jsonl").write_text("".join(lines))
    (directory / "v.jsonl").write_text("".join(lines[:20]))
    paths = {"paths": [f"{directory}/t.jsonl"], "val_paths": [f"{directory}/v.jsonl"]}
    return {"source": "jsonl", "tokenizer": "bytes"} | paths


def test_a_document_named_for_validation_is_not_lost_to_training(prepare_corpus, overlap, tmp_path):
    """Without it, named validation documents would be trained on when their file comes later."""
    data = prepare_corpus(tmp_path / "data", **overlap).data
    assert (data.val.documents, data.train.documents) == (20, 80)
    assert data.skipped["duplicates"] == 20
    assert stored_documents(tmp_path / "data", "val")[0] == "document 0 " * 5
    assert stored_documents(tmp_path / "data", "train")[0] == "document 20 " * 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {},
            r"the train split \(skipped: 0 empty, 100 duplicates, .*: give other files in --paths$",
        ),
        ({"max_documents": 50}, r"0 duplicates, .* --paths or more --max_documents"),
    ],
)
def test_an_empty_named_split_is_not_blamed_on_the_draw(
    prepare_corpus, overlap, tmp_path, changes, message
):
    """Without it, the advice would be to change a seed that decides nothing."""
    changes = overlap | {"val_paths": overlap["paths"], "paths": overlap["val_paths"]} | changes
    (tmp_path / "text" / "v.jsonl").write_bytes((tmp_path / "text" / "t.jsonl").read_bytes())
    with pytest.raises(UserError, match=message) as caught:
        prepare_corpus(tmp_path / "data", **changes)
    assert "seed" not in str(caught.value)


def test_an_empty_source_is_named_so(prepare_corpus, tmp_path):
    """Without it, the message would be about splits."""
    (tmp_path / "empty.txt").write_text("")
    changes = {"paths": [str(tmp_path / "empty.txt")], "tokenizer": "bytes"}
    with pytest.raises(UserError, match="source text holds no text at all"):
        prepare_corpus(tmp_path / "data", **changes)


def test_best_fit_rows_begin_with_bos(prepare_corpus, tmp_path):
    """Without it, the packing asked for would not be the one stored."""
    summary = prepare_corpus(tmp_path / "data", packing="best_fit")
    assert (stored_rows(tmp_path / "data", "train")[:, 0] == summary.data.bos).all()
    train = summary.data.train
    assert train.tokens == train.rows * 17 + train.cropped


def test_a_large_vocabulary_is_stored_in_four_bytes(prepare_corpus, tmp_path):
    """Without it, token 65,536 + n would be stored as n."""
    vocabulary = {"the": 0, "<s>": 1, "loop": 70_000, "runs": 99_999}
    backend = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token="the"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.save(str(tmp_path / "tokenizer.json"))
    summary = prepare_corpus(tmp_path / "data", tokenizer=str(tmp_path / "tokenizer.json"))
    assert (summary.data.vocab_size, summary.data.dtype) == (100_000, "uint32")
    rows = stored_rows(tmp_path / "data", "train")
    assert rows.dtype == np.uint32
    assert set(rows.reshape(-1).tolist()) == set(vocabulary.values())


def test_max_documents_stops_the_reading(prepare_corpus, tmp_path):
    """Without it, a dataset of the hub would be read to its end."""
    data = prepare_corpus(tmp_path / "data", max_documents=20).data
    assert data.train.documents + data.val.documents == 20


def test_a_directory_with_other_files_is_refused(prepare_corpus, tmp_path):
    """Without it, somebody's files would be mixed with ours or replaced."""
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(UserError, match="holds other files"):
        prepare_corpus(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("", "--out is empty: name a directory"),
        ("file", "--out .*file is a file: name a directory"),
        ("x" * 300, "cannot use --out .*too long"),
        ("file/data", "cannot write to"),
    ],
)
def test_an_out_that_cannot_be_a_directory_is_refused(prepare_corpus, tmp_path, out, message):
    """Without it, the message would be about missing data, or the current directory be taken."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match=message):
        prepare_corpus(str(tmp_path / out) if out else out)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_input_that_breaks_is_blamed_and_leaves_nothing(prepare_corpus, tmp_path):
    """Without it, a damaged input would be told as an output that cannot be written."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.Table.from_pylist([{"text": f"{n} " * 500} for n in range(9)])
    parquet.write_table(table, tmp_path / "in.parquet")
    content = bytearray((tmp_path / "in.parquet").read_bytes())
    content[40:200] = b"\xff" * 160
    (tmp_path / "in.parquet").write_bytes(content)
    changes = {"source": "parquet", "paths": [f"{tmp_path}/in.parquet"], "tokenizer": "bytes"}
    with pytest.raises(UserError, match=r"^cannot read .*in.parquet: "):
        prepare_corpus(tmp_path / "data", **changes)
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seq_len": 0}, "seq_len 0"),
        ({"val_fraction": 0.0}, r"val_fraction 0\.0"),
        ({"val_fraction": 1.5}, r"val_fraction 1\.5"),
        ({"tokenizer": "bpe-9"}, "unknown tokenizer 'bpe-9'"),
        ({"tokenizer": "bpe:9"}, "at least 257"),
        ({"tokenizer": "bpe:60000"}, "yields only"),
        ({"tokenizer": "missing.json"}, "there is no such file"),
        ({"tokenizer": None}, "source text needs a tokenizer: give --tokenizer"),
        ({"seq_len": None}, "source text needs a row length: give --seq_len"),
        ({"packing": "tight"}, "unknown packing 'tight': choose concat or best_fit"),
        ({"max_documents": 0}, "max_documents 0"),
        ({"tokenizer": "x" * 300}, "cannot read tokenizer xxx.*: File name too long"),
        ({"paths": ["x" * 300]}, "cannot reach xxx.*: File name too long"),
        ({"seed": 2**63}, "seed 9223372036854775808"),
        ({"source": "txt"}, "did you mean text"),
        ({"val_fraction": 1e-9}, "no document fell into the val split"),
        ({"seq_len": 100_000}, "tokens of the train split do not fill one row"),
    ],
)
def test_a_mistake_is_named_and_leaves_nothing(prepare_corpus, tmp_path, changes, message):
    """Without it, a mistake would leave a directory that looks prepared."""
    with pytest.raises(UserError, match=message):
        prepare_corpus(tmp_path / "data", **changes)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_named_and_leaves_nothing(prepare_corpus, tmp_path, monkeypatch):
    """Without it, a chunk that was cut short could be taken for data."""

    def full(writer, rows):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(row_store.RowWriter, "write", full)
    with pytest.raises(UserError, match="No space left on device; nothing was left behind"):
        prepare_corpus(tmp_path / "data")
    assert list(tmp_path.iterdir()) == []


def test_rows_that_did_not_reach_the_disk_are_noticed(prepare_corpus, tmp_path, monkeypatch):
    """Without it, success would be reported for what the writer claims, not for what is there."""
    close = row_store.RowWriter.close

    def lossy_close(writer):
        stored = close(writer)
        for path in tmp_path.rglob("chunk-*"):
            path.write_bytes(path.read_bytes()[:-1] + b"\xff")
        return stored

    monkeypatch.setattr(row_store.RowWriter, "close", lossy_close)
    with pytest.raises(UserError, match="damaged"):
        prepare_corpus(tmp_path / "data")
    assert list(tmp_path.iterdir()) == []


def test_a_killed_preparation_leaves_no_data(corpus, tmp_path):
    """Without it, a kill would leave an index of what was written so far (pitfalls row 58)."""
    program = (
        "import os\n"
        "from looped.datamodules import row_store\n"
        "from looped.datamodules.prepare import prepare\n"
        "row_store.RowWriter.close = lambda writer: os._exit(9)\n"
        f"prepare(source='text', paths=[{str(corpus)!r} + '/*.txt'], seq_len=16,"
        f" tokenizer='bpe:300', val_fraction=0.3, out={str(tmp_path / 'data')!r})"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == 9
    assert not (tmp_path / "data").exists()


def test_the_start_method_is_left_alone(prepare_corpus, tmp_path):
    """Without it, every later loader process would be spawned, slowly (pitfalls row 59)."""
    before = multiprocessing.get_start_method(allow_none=True)
    prepare_corpus(tmp_path / "data")
    assert multiprocessing.get_start_method(allow_none=True) == before
