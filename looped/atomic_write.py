"""Write a file whole or not at all: beside its place first, then renamed into it."""

import os
import stat
import tempfile
from pathlib import Path

NEW_FILE_MODE = 0o644
"""Temporary files are made so that only their owner can read them."""


def write_atomically(path: Path, text: str) -> None:
    """Replace the content of `path` by `text`; a reader sees the old file or the new, never half.

    A link stays one, and what it leads to is replaced; an old file's permissions stay. What is no
    file, such as /dev/null or a pipe, is written into.

    Args:
        path: the file to write; its directory must exist.
        text: the whole new content, written as UTF-8.

    Raises:
        OSError: the directory is missing or not writable, or the disk is full. The old file, if
            any, is then untouched and nothing else is left behind.
    """
    path = Path(os.path.realpath(path))
    mode = NEW_FILE_MODE
    if path.exists():
        mode = stat.S_IMODE(path.stat().st_mode)
        if not path.is_file():
            path.write_text(text, encoding="utf-8")
            return
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
