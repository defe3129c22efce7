"""A directory appears complete or not at all."""

import errno
import os
import signal
import subprocess
import sys
import threading

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


def test_sigterm_leaves_nothing(tmp_path):
    """Without it, each job that a scheduler ends would leave a copy of the data."""
    program = (
        "import time; from pathlib import Path;"
        "from looped.datamodules.staging import staging_directory\n"
        f"with staging_directory(Path({str(tmp_path / 'data')!r})) as staging:\n"
        "    (staging / 'file').write_text('x'); print('begun', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"begun\n"
        process.terminate()
        assert process.wait(timeout=30) == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


def test_handlers_of_sigterm_are_as_before(tmp_path):
    """Without it, a program that prepares data could not be ended, or lose its own handler."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        for number, handler in enumerate((signal.SIG_DFL, print)):
            signal.signal(signal.SIGTERM, handler)
            with staging_directory(tmp_path / str(number)):
                inside = signal.getsignal(signal.SIGTERM)
            assert (inside is handler) == (handler is print)
            assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_another_thread_may_stage(tmp_path):
    """Without it, preparing in a thread would fail, since only the main one may set handlers."""
    failures = []

    def stage():
        try:
            with staging_directory(tmp_path / "data"):
                pass
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=stage)
    thread.start()
    thread.join()
    assert failures == []
    assert (tmp_path / "data").is_dir()


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
