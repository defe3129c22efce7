"""A directory appears complete or not at all."""

import errno
import os
import subprocess
import sys

import pytest

from looped.datamodules.staging import staging_directory
from looped.errors import UserError


def fill(target, error):
    with staging_directory(target) as staging:
        (staging / "file").write_text("x")
        raise error


def test_the_directory_appears_only_at_the_end(tmp_path):
    """Without it, a reader could see half of the data."""
    target = tmp_path / "new" / "data"
    with staging_directory(target) as staging:
        (staging / "file").write_text("x")
        assert not target.exists()
    assert [path.name for path in target.parent.iterdir()] == ["data"]
    assert (target / "file").read_text() == "x"


def test_an_empty_directory_is_taken(tmp_path):
    """Without it, somebody who made the directory beforehand would be refused."""
    with staging_directory(tmp_path / "data") as staging:
        (tmp_path / "data").mkdir()
        (staging / "file").write_text("x")
    assert (tmp_path / "data" / "file").exists()


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt()])
def test_an_error_leaves_nothing(tmp_path, error):
    """Without it, an interrupted preparation would fill the disk."""
    with pytest.raises(type(error)):
        fill(tmp_path / "data", error)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_line(tmp_path):
    """Without it, the user would see a traceback of the chunk writer."""
    with pytest.raises(UserError, match=r"cannot write .*data: No space left on device"):
        fill(tmp_path / "data", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed(tmp_path):
    """Without it, each kill would leave a copy of the data; a running one must not be touched."""
    program = (
        "import os, sys; from pathlib import Path;"
        "from looped.datamodules.staging import staging_directory\n"
        f"with staging_directory(Path({str(tmp_path / 'data')!r})): os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    (left,) = tmp_path.iterdir()
    running = left.with_name(left.name.rsplit("-", 1)[0] + f"-{os.getppid()}")
    running.mkdir()
    with staging_directory(tmp_path / "data"):
        assert not left.exists()
        assert running.exists()


def test_a_place_that_cannot_be_written_is_one_line(tmp_path):
    """Without it, a file in the way would be a traceback."""
    (tmp_path / "file").write_text("x")
    with (
        pytest.raises(UserError, match="cannot write to"),
        staging_directory(tmp_path / "file" / "data"),
    ):
        pass
