"""The files of a source, on this machine or anywhere that fsspec reaches."""

import glob
import hashlib
import json
import lzma
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from looped.errors import UserError

_LOCAL_URL = "file://"


@dataclass(frozen=True)
class InputFile:
    """A file of a source.

    Attributes:
        path: path or URL.
        held_out: true for validation documents, false for training ones, null when the seeded
            split decides.
    """

    path: str
    held_out: bool | None = None

    def open(self) -> BinaryIO:
        """Open it for reading; what ends in .gz, .bz2 or .xz is decompressed.

        Raises:
            UserError: it cannot be opened.
        """
        import fsspec

        try:
            return cast(BinaryIO, fsspec.open(self.path, "rb", compression="infer").open())
        except (OSError, ValueError) as error:
            raise UserError(f"cannot read {self.path}: {error}") from error

    def size_bytes(self) -> int:
        """Bytes it takes where it lies.

        Raises:
            UserError: it is not there any more, or out of reach.
        """
        try:
            if _is_url(self.path):
                filesystem, path = _filesystem(self.path)
                return int(filesystem.size(path) or 0)
            return Path(self.path).stat().st_size
        except OSError as error:
            raise UserError(f"cannot read {self.path}: {error.strerror or error}") from error


@contextmanager
def reading(file: InputFile) -> Iterator[BinaryIO]:
    """The open file; what goes wrong with it inside the block is told as its fault.

    Raises:
        UserError: it cannot be opened, read or decompressed.
    """
    try:
        with file.open() as stream:
            yield stream
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"cannot read {file.path}: {reason}") from error


def find_files(patterns: Sequence[str], val_patterns: Sequence[str] = ()) -> list[InputFile]:
    """The files that match, each one once: validation files first, then by their names.

    Args:
        patterns: paths, URLs or globs of either (`**` for any depth).
        val_patterns: the same for validation documents; when there are any, all other files hold
            training documents, and when there are none, the seeded split decides.

    Raises:
        UserError: a pattern matches no file.
    """
    held_out = {path for pattern in val_patterns for path in _matches(pattern)}
    others = {path for pattern in patterns for path in _matches(pattern)} - held_out
    side = False if val_patterns else None
    files = [InputFile(path, True) for path in held_out]
    files += [InputFile(path, side) for path in others]
    return sorted(files, key=lambda file: (not file.held_out, file.path))


def inventory(files: Sequence[InputFile]) -> dict[str, Any]:
    """What tells that the files are others than last time: number, size and a digest.

    The digest covers the name, side and size of each file in order, and the content of those on
    this machine; others are not read for it.

    Raises:
        UserError: a file cannot be read.
    """
    digest = hashlib.sha256()
    total = 0
    for file in files:
        name, content = file.path, None
        size = file.size_bytes()
        if not _is_url(file.path) or file.path.startswith(_LOCAL_URL):
            path = Path(file.path.removeprefix(_LOCAL_URL))
            name, content = path.name, _content_hash(path)
        digest.update(json.dumps([name, file.held_out, size, content]).encode())
        total += size
    return {"files": len(files), "bytes": total, "sha256": digest.hexdigest()}


def _content_hash(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error


def _matches(pattern: str) -> list[str]:
    try:
        if _is_url(pattern):
            filesystem, path = _filesystem(pattern)
            found = [filesystem.unstrip_protocol(name) for name in filesystem.glob(path)]
        elif Path(pattern).is_dir():
            raise UserError(
                f"{pattern} is a directory: name its files, for instance {pattern}/**/*"
            )
        else:
            found = [name for name in glob.glob(pattern, recursive=True) if Path(name).is_file()]
    except OSError as error:
        raise UserError(f"cannot reach {pattern}: {error.strerror or error}") from error
    if not found:
        raise UserError(f"no file matches {pattern}")
    return found


def _is_url(path: str) -> bool:
    return "://" in path


def _filesystem(url: str) -> tuple[Any, str]:
    import fsspec

    try:
        filesystem, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError, OSError) as error:
        raise UserError(f"cannot reach {url}: {error}") from error
    return filesystem, path
