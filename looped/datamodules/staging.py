"""A directory that appears complete or not at all."""

import contextlib
import os
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from looped.errors import UserError


@contextmanager
def staging_directory(target: Path) -> Iterator[Path]:
    """A hidden directory beside `target` that is renamed to `target` at the end.

    Leaving the block by an exception removes it, and SIGTERM is made one: SystemExit. What a killed
    process of this machine left behind for the same target is removed first.

    Args:
        target: must not exist, or be an empty directory.

    Yields:
        The directory to write into.

    Raises:
        UserError: the place is not writable or the disk is full.
    """
    with _termination_raises(), _staging(target) as staging:
        yield staging


@contextmanager
def _staging(target: Path) -> Iterator[Path]:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(target)
        staging = target.parent / f"{_prefix(target)}{os.getpid()}"
        staging.mkdir()
    except OSError as error:
        raise UserError(f"cannot write to {target.parent}: {error.strerror}") from error
    try:
        yield staging
        os.replace(staging, target)
    except OSError as error:
        raise UserError(
            f"cannot write {target}: {error.strerror or error}; nothing was left behind"
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def _termination_raises() -> Iterator[None]:
    """SIGTERM raises SystemExit with the status of a killed process, once, instead of killing.

    Where somebody else handles the signal, or in another thread than the main one, nothing changes.
    """
    is_ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    if not is_ours:
        yield
        return

    def leave(number: int, frame: Any) -> None:
        signal.signal(number, signal.SIG_IGN)  # a second one must not stop the cleaning up
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _prefix(target: Path) -> str:
    return f".{target.name}.unfinished-{socket.gethostname()}-"


def _remove_abandoned(target: Path) -> None:
    prefix = _prefix(target)
    for path in target.parent.glob(f"{prefix}*"):
        pid = path.name.removeprefix(prefix)
        if pid.isdecimal() and not _is_running(int(pid)):
            shutil.rmtree(path, ignore_errors=True)


def _is_running(pid: int) -> bool:
    with contextlib.suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return True
