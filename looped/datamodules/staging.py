"""A directory that appears complete or not at all."""

import contextlib
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from looped.errors import UserError


@contextmanager
def staging_directory(target: Path) -> Iterator[Path]:
    """A hidden directory beside `target` that is renamed to `target` at the end.

    Leaving the block by an exception removes it. What a killed process of this machine left behind
    for the same target is removed first.

    Args:
        target: must not exist, or be an empty directory.

    Yields:
        The directory to write into.

    Raises:
        UserError: the place is not writable or the disk is full.
    """
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
