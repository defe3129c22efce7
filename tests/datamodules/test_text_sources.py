"""Text files become the documents that are in them, in a fixed order."""

import sysconfig
from pathlib import Path

import pytest

from looped.datamodules import text_sources
from looped.datamodules.input_files import InputFile
from looped.datamodules.sources import SourceRequest
from looped.datamodules.text_sources import TextFiles, stdlib_source, text_source
from looped.errors import UserError


def texts(source) -> list[str]:
    return [document.text for document in source.documents()]


def test_stdlib_is_the_library_and_not_its_tests():
    """Without it, validation would be on test fixtures, or the order would depend on the disk."""
    source = stdlib_source()
    found = texts(source)
    root = Path(sysconfig.get_paths()["stdlib"])
    assert (root / "argparse.py").read_bytes().decode() in found
    assert not any("class TestCase(" in text and "test_support" in text for text in found)
    assert (root / "json" / "decoder.py").read_bytes().decode() in found
    assert 5e6 < sum(len(text.encode()) for text in found) == source.size_bytes() < 3e7
    assert found == texts(source)


def test_stdlib_without_sources_is_refused(monkeypatch, tmp_path):
    """Without it, a stripped Python would prepare an empty directory."""
    monkeypatch.setattr(text_sources.sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})
    with pytest.raises(UserError, match="has no library sources"):
        stdlib_source()


def test_line_ends_are_kept(tmp_path):
    """Without it, the bytes per token would not be those of the file."""
    (tmp_path / "a.txt").write_bytes(b"a\r\nb\n")
    source = text_source(SourceRequest(name="text", paths=(str(tmp_path / "a.txt"),)))
    assert texts(source) == ["a\r\nb\n"]


def test_an_undecodable_file_is_skipped_and_counted(tmp_path):
    """Without it, one Latin-1 file would stop the preparation of a million others."""
    (tmp_path / "a.txt").write_bytes(b"good")
    (tmp_path / "b.txt").write_bytes(b"caf\xe9")
    source = text_source(SourceRequest(name="text", paths=(f"{tmp_path}/*.txt",)))
    assert (texts(source), source.undecodable) == (["good"], 1)
    assert (texts(source), source.undecodable) == (["good"], 1)  # not 2 after a second pass


def test_only_undecodable_files_are_an_error(tmp_path):
    """Without it, the message would be about an empty split instead of the encoding."""
    (tmp_path / "b.txt").write_bytes(b"caf\xe9")
    source = text_source(SourceRequest(name="text", paths=(f"{tmp_path}/*.txt",)))
    with pytest.raises(UserError, match="none of the 1 files of text is UTF-8"):
        texts(source)


@pytest.mark.parametrize("block", [1, 2, 3, 1000])
def test_a_separator_is_found_across_blocks(tmp_path, monkeypatch, block):
    """Without it, documents of a large file would be glued together at block borders."""
    monkeypatch.setattr(text_sources, "_BLOCK_BYTES", block)
    (tmp_path / "a.txt").write_text("one\n--\ntwo é\n--\n\n--\nfour", encoding="utf-8")
    source = TextFiles("text", [InputFile(str(tmp_path / "a.txt"))], separator="\n--\n")
    assert texts(source) == ["one", "two é", "", "four"]


def test_an_empty_separator_is_refused(tmp_path):
    """Without it, Python's own message about an empty separator would reach the user."""
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(UserError, match="separator ''"):
        text_source(SourceRequest(name="text", paths=(f"{tmp_path}/a.txt",), separator=""))
