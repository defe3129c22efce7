"""Locks on files: the system's (flock), so that the end of a process, however it ends, frees them.

The file is never removed: a lock on a removed file protects nothing. Network file systems must
support flock (NFS does since Linux 2.6.12; Lustre when mounted with `flock`).
"""

import fcntl
import time
from pathlib import Path
from typing import TextIO

LOOK_S = 1.0
"""How long a look (`is_locked`), which holds a shared lock for an instant, may seem to last."""


def lock(path: Path, *, patience_s: float = 0.0) -> TextIO | None:
    """Lock a file, which is made where it is missing.

    Args:
        path: the file; its directory must exist.
        patience_s: how long to try again while another holds it; `LOOK_S` outlasts a mere look.

    Returns:
        The open file that holds the lock until it is closed; null when another holds it.

    Raises:
        OSError: the file cannot be made, or its file system has no locks.
    """
    stream = path.open("a+", encoding="utf-8")
    deadline = time.monotonic() + patience_s
    try:
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return stream
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    stream.close()
                    return None
                time.sleep(LOOK_S / 20)
    except OSError:
        stream.close()
        raise


def is_locked(path: Path) -> bool:
    """Whether some process holds the lock of a file; a missing file is not locked."""
    try:
        stream = path.open(encoding="utf-8")
    except OSError:
        return False
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
