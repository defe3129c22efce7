"""Files are found by pattern, here and elsewhere, in a fixed order."""

import gzip

import fsspec
import pytest

from looped.datamodules.input_files import InputFile, find_files, inventory
from looped.errors import UserError


@pytest.fixture
def files(tmp_path):
    for name in ("b.txt", "a.txt", "sub/c.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    return tmp_path


def test_files_come_in_order_of_their_names_each_once(files):
    """Without it, the order of the tokens would depend on the file system or the patterns."""
    found = find_files([f"{files}/**/*.txt", f"{files}/b.txt"])
    assert found == [
        InputFile(f"{files}/a.txt"),
        InputFile(f"{files}/b.txt"),
        InputFile(f"{files}/sub/c.txt"),
    ]


def test_named_validation_files_leave_the_others_to_training(files):
    """Without it, a file could be in both splits or be drawn at random."""
    found = find_files([f"{files}/**/*.txt"], [f"{files}/sub/*"])
    assert found == [
        InputFile(f"{files}/sub/c.txt", True),
        InputFile(f"{files}/a.txt", False),
        InputFile(f"{files}/b.txt", False),
    ]


def test_urls_are_found_read_and_measured():
    """Without it, text in an object store would have to be downloaded first."""
    memory = fsspec.filesystem("memory")
    memory.pipe({"/looped-test/b.txt": b"second", "/looped-test/a.txt": b"first"})
    found = find_files(["memory://looped-test/*.txt"])
    contents = []
    for file in found:
        with file.open() as stream:
            contents.append(stream.read())
    assert contents == [b"first", b"second"]
    stated = inventory(found)
    assert (stated["files"], stated["bytes"]) == (2, 11)
    memory.rm("/looped-test", recursive=True)


def test_compressed_files_are_decompressed(tmp_path):
    """Without it, the usual .jsonl.gz would be undecodable."""
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"text"))
    with InputFile(str(tmp_path / "a.gz")).open() as stream:
        assert stream.read() == b"text"


def test_a_pattern_without_files_is_named(files):
    """Without it, a typing error in one of two patterns would lose half the text silently."""
    with pytest.raises(UserError, match=r"no file matches .*none"):
        find_files([f"{files}/*.txt", f"{files}/none*"])


def test_a_directory_is_answered_with_a_pattern(files):
    """Without it, a directory would match no file and the message would not help."""
    with pytest.raises(UserError, match="is a directory: name its files"):
        find_files([str(files)])


def test_an_unknown_protocol_is_one_line():
    """Without it, a missing package would be a traceback of fsspec."""
    with pytest.raises(UserError, match="cannot reach nowhere://x"):
        find_files(["nowhere://x"])


def test_a_file_that_vanished_is_one_line(tmp_path):
    """Without it, a file removed meanwhile would be a traceback."""
    with pytest.raises(UserError, match="cannot read"):
        InputFile(str(tmp_path / "gone")).open()
    with pytest.raises(UserError, match=r"cannot read .*gone: No such file"):
        InputFile(str(tmp_path / "gone")).size_bytes()


@pytest.mark.parametrize("change", ["content", "name", "side"])
def test_the_inventory_tells_files_of_equal_size_apart(files, change):
    """Without it, data of the old text would be 'already complete' after an edit."""
    before = inventory(find_files([f"{files}/*.txt"], [f"{files}/sub/*"]))
    if change == "content":
        (files / "a.txt").write_text("A.txt")
    elif change == "name":
        (files / "b.txt").rename(files / "d.txt")
    val = f"{files}/a.txt" if change == "side" else f"{files}/sub/*"
    after = inventory(find_files([f"{files}/*.txt", f"{files}/sub/*"], [val]))
    assert (before["files"], before["bytes"]) == (after["files"], after["bytes"])
    assert before["sha256"] != after["sha256"]


def test_the_inventory_does_not_depend_on_where_the_files_lie(files):
    """Without it, data would be refused after the text was moved with everything else."""
    before = inventory(find_files([f"{files}/*.txt"]))
    assert inventory(find_files([f"file://{files}/*.txt"])) == before
    moved = files.rename(files.with_name("moved"))
    assert inventory(find_files([f"{moved}/*.txt"])) == before
