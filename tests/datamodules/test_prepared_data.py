"""A prepared directory is what was written, or it is refused with the reason."""

import json
import shutil

import pytest

from looped.datamodules import prepared_data
from looped.datamodules.prepared_data import read_prepared
from looped.errors import UserError


@pytest.fixture
def directory(prepared, tmp_path):
    return shutil.copytree(prepared, tmp_path / "data")


def change_json(directory, **changes):
    path = directory / "data.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_what_was_written_is_read_back(directory):
    """Without it, training would see other counts than those printed."""
    data = read_prepared(directory)
    data.verify(directory, full=True)
    content = json.loads((directory / "data.json").read_text())
    assert content["fingerprint"] == data.fingerprint
    assert data.train.rows == content["train"]["rows"] > 0
    assert data.row_length == 17


def test_a_missing_directory_says_what_to_type(tmp_path):
    """Without it, the newcomer's first mistake would be a traceback."""
    with pytest.raises(UserError, match="does not exist; make it with: looped prepare --source"):
        read_prepared(tmp_path / "none")


def test_what_to_type_suits_the_model(tmp_path):
    """Without it, whoever types what the message says gets data that the model refuses."""
    with pytest.raises(UserError, match=r"--seq_len 64 --tokenizer bpe:512$"):
        read_prepared(tmp_path / "none", seq_len=64, vocab_size=512)


def test_a_file_is_no_directory(tmp_path):
    """Without it, a checkpoint given as data would be a traceback."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="not a directory"):
        read_prepared(tmp_path / "file")


def test_an_empty_directory_is_named_so(tmp_path):
    """Without it, an unmounted disk would look like damage."""
    with pytest.raises(UserError, match=r"it is empty \(no data.json\); make it with"):
        read_prepared(tmp_path)


def test_a_directory_without_data_json_is_refused(directory):
    """Without it, a copy that broke off would be trained on."""
    (directory / "data.json").unlink()
    with pytest.raises(UserError, match="half-written or something else"):
        read_prepared(directory)


def test_another_version_is_refused(directory):
    """Without it, a later layout would be misread."""
    change_json(directory, schema=99)
    with pytest.raises(UserError, match=r"another version of looped \(schema 99"):
        read_prepared(directory)


@pytest.mark.parametrize("changes", [{"seq_len": 8}, {"fingerprint": "0" * 16}])
def test_an_edited_data_json_is_refused(directory, changes):
    """Without it, the fingerprint in a run's record would name other data."""
    change_json(directory, **changes)
    with pytest.raises(UserError, match="was changed after it was written"):
        read_prepared(directory)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 1}'])
def test_a_damaged_data_json_is_refused(directory, text):
    """Without it, a truncated file would be a traceback."""
    (directory / "data.json").write_text(text)
    with pytest.raises(UserError, match="not written by looped or is damaged"):
        read_prepared(directory)


def flip_token(directory):
    path = directory / "val" / "chunk-0-0.bin"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def edit_tokenizer(directory):
    path = directory / "tokenizer.json"
    path.write_text(path.read_text() + " ")


def remove_tokenizer(directory):
    (directory / "tokenizer.json").unlink()


def remove_split(directory):
    shutil.rmtree(directory / "train")


def shorten_index(directory):
    path = directory / "train" / "index.json"
    index = json.loads(path.read_text())
    index["chunks"] = []
    path.write_text(json.dumps(index))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (flip_token, "the tokens of val were changed"),
        (edit_tokenizer, "tokenizer.json was changed"),
        (remove_tokenizer, "tokenizer.json is missing"),
        (remove_split, "train/index.json is missing"),
        (shorten_index, "train holds 0 rows"),
    ],
)
def test_damage_is_refused_with_its_reason(directory, damage, message):
    """Without it, a run would train on something else than its record says."""
    damage(directory)
    with pytest.raises(UserError, match=f"is damaged: {message}"):
        read_prepared(directory).verify(directory)


def test_large_data_is_read_in_full_only_on_demand(directory, monkeypatch):
    """Without it, every start of a large run would read all of its data."""
    flip_token(directory)
    monkeypatch.setattr(prepared_data, "FULL_CHECK_BYTES", 10)
    read_prepared(directory).verify(directory)
    with pytest.raises(UserError, match="tokens of val were changed"):
        read_prepared(directory).verify(directory, full=True)
