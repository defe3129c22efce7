"""Write a file whole or not at all: beside its place first, then renamed into it."""

import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Replace the content of `path` by `text`; a reader sees the old file or the new, never half.

    Args:
        path: the file to write; its directory must exist.
        text: the whole new content, written as UTF-8.

    Raises:
        OSError: the directory is missing or not writable, or the disk is full. The old file, if
            any, is then untouched and nothing else is left behind.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, 0o644)  # mkstemp makes files that only their owner can read
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
