"""One lock per run: whoever trains it holds it, and the system releases it however they end.

    <sweep>/locks/<run>.lock

A `looped fit` by hand takes no such lock, but that of its run directory (looped/run_directory.py),
which every training process holds as well.

A lock belongs to the process that writes into the run directory and to the processes it starts with
the file open, not to the launcher (looped/file_lock.py).
"""

import contextlib
import fcntl
import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from looped.file_lock import LOOK_S, is_locked, lock
from looped.record import LOCK_FILE

LOCK_DIR = "locks"
SWEEP_LOCK = ".sweep"


def lock_path(directory: Path) -> Path:
    """The lock of the run in this run directory."""
    return directory.parent / LOCK_DIR / f"{directory.name}.lock"


def take_lock(directory: Path) -> TextIO | None:
    """Take the lock of a run.

    Args:
        directory: the run directory; it need not exist.

    Returns:
        The open file that holds the lock until it is closed; null when another process trains it.

    Raises:
        OSError: the lock file cannot be made.
    """
    path = lock_path(directory)
    path.parent.mkdir(parents=True, exist_ok=True)
    stream = lock(path, patience_s=LOOK_S)
    if stream is not None:
        stream.truncate(0)
        json.dump({"host": platform.node(), "pid": os.getpid()}, stream)
        stream.flush()
    return stream


def is_held(directory: Path) -> bool:
    """Whether some process is training the run right now: for a sweep, or in a `fit` by hand."""
    return any(is_locked(path) for path in (lock_path(directory), directory / LOCK_FILE))


@contextlib.contextmanager
def sweep_lock(out: Path) -> Iterator[None]:
    """Hold the sweep itself for a moment, waiting for others: for what all launchers share."""
    path = out / LOCK_DIR / f"{SWEEP_LOCK}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
