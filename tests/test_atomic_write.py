"""A file is replaced whole or left as it was."""

import os
import stat

import pytest

from looped.atomic_write import write_atomically


def test_the_new_content_replaces_the_old(tmp_path):
    path = tmp_path / "a.txt"
    write_atomically(path, "old")
    write_atomically(path, "new ä")
    assert path.read_text(encoding="utf-8") == "new ä"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_failed_write_leaves_the_old_file_and_no_debris(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    write_atomically(path, "old")

    def full_disk(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_link_stays_one_and_permissions_stay(tmp_path):
    """The file it leads to is replaced, with its permissions."""
    target, link = tmp_path / "a.txt", tmp_path / "link.txt"
    write_atomically(target, "old")
    assert stat.S_IMODE(target.stat().st_mode) == 0o644
    target.chmod(0o600)
    link.symlink_to(target)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_what_is_no_file_is_written_into(tmp_path):
    """As root, --json /dev/null replaced the machine's null device by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(pipe, "through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]
