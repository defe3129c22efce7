"""A source is found by name and its files by pattern."""

import pytest

from looped.datamodules.sources import InputFile, SourceRequest, find_files, open_source
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
    names = [file.path.relative_to(files).as_posix() for file in found]
    assert names == ["a.txt", "b.txt", "sub/c.txt"]
    assert {file.held_out for file in found} == {None}


def test_named_validation_files_leave_the_others_to_training(files):
    """Without it, a file could be in both splits or be drawn at random."""
    found = find_files([f"{files}/**/*.txt"], [f"{files}/sub/*"])
    assert found == [
        InputFile(files / "a.txt", False),
        InputFile(files / "b.txt", False),
        InputFile(files / "sub/c.txt", True),
    ]


def test_a_pattern_without_files_is_named(files):
    """Without it, a typing error in one of two patterns would lose half the text silently."""
    with pytest.raises(UserError, match=r"no file matches .*none"):
        find_files([f"{files}/*.txt", f"{files}/none*"])


def test_a_directory_is_answered_with_a_pattern(files):
    """Without it, a directory would match no file and the message would not help."""
    with pytest.raises(UserError, match="is a directory: name its files"):
        find_files([str(files)])


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (SourceRequest(name="stdlb"), "unknown source 'stdlb': did you mean stdlib"),
        (SourceRequest(name="?"), "choose stdlib, text"),
        (SourceRequest(name="text"), "needs files: name them with --paths"),
        (SourceRequest(name="stdlib", paths=("a",)), "source stdlib takes no paths"),
    ],
)
def test_a_request_that_cannot_be_is_refused(request_, message):
    """Without it, an option would be ignored or a traceback shown."""
    with pytest.raises(UserError, match=message):
        open_source(request_)
