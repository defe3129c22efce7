"""A lock keeps others out, outlasts a look, and does not outlive its holder."""

import fcntl
import subprocess
import sys
import threading
import time

from looped.file_lock import LOOK_S, is_locked, lock

HOLD = """
import sys, time
from pathlib import Path
from looped.file_lock import lock
held = lock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def holder(path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    return process


def test_a_lock_keeps_others_out_until_its_holder_is_killed(tmp_path):
    path = tmp_path / "lock"
    process = holder(path)
    try:
        assert is_locked(path)
        assert lock(path) is None
    finally:
        process.kill()
        process.wait()
    assert not is_locked(path)
    with lock(path) as held:
        assert not held.closed


def test_a_missing_file_is_not_locked_and_a_look_does_not_make_it(tmp_path):
    assert not is_locked(tmp_path / "lock")
    assert not (tmp_path / "lock").exists()


def test_patience_outlasts_a_look(tmp_path):
    """`looped sweep status` looks: it must not keep a run from starting."""
    path = tmp_path / "lock"
    look = path.open("w")
    fcntl.flock(look, fcntl.LOCK_SH)
    threading.Timer(LOOK_S / 5, look.close).start()
    second = lock(path, patience_s=10 * LOOK_S)
    assert second is not None
    second.close()


def test_patience_ends(tmp_path):
    path = tmp_path / "lock"
    with lock(path):
        started = time.monotonic()
        assert lock(path, patience_s=0.2) is None
        assert time.monotonic() - started >= 0.2
