"""A directory to read from, on this machine or in an object store."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from looped.errors import UserError

_BLOCK_BYTES = 4 * 2**20
# litdata's way to say: read this path like a remote one, through the cache on the local disk.
_CACHED_PATH = "local:"


@dataclass(frozen=True)
class Directory:
    """A directory, by its address.

    Attributes:
        address: a path; a URL that fsspec and litdata know (`s3://...`, `gs://...`); or
            `local:PATH` for a slow network disk, whose chunks litdata then caches.
    """

    address: str

    @classmethod
    def at(cls, address: "Directory | Path | str") -> "Directory":
        """The directory at a path or address; itself if it is one already."""
        return address if isinstance(address, Directory) else cls(str(address))

    def __str__(self) -> str:
        return self.address

    @property
    def is_remote(self) -> bool:
        """Whether reading it costs more than reading the local disk."""
        return "://" in self.address or self.address.startswith(_CACHED_PATH)

    def joined(self, name: str) -> "Directory":
        """A directory inside this one."""
        return Directory(f"{self.address.rstrip('/')}/{name}")

    def exists(self) -> bool:
        """Whether there is anything at the address."""
        filesystem, root = self._filesystem()
        return bool(filesystem.exists(root))

    def is_directory(self) -> bool:
        """Whether it is a directory and not a file."""
        filesystem, root = self._filesystem()
        return bool(filesystem.isdir(root))

    def is_empty(self) -> bool:
        """Whether there is nothing in it."""
        filesystem, root = self._filesystem()
        return not filesystem.ls(root)

    def size(self, name: str) -> int | None:
        """Bytes of a file; null when it is not there."""
        filesystem, root = self._filesystem()
        path = f"{root}/{name}"
        return int(filesystem.size(path)) if filesystem.isfile(path) else None

    def read(self, name: str) -> bytes:
        """The content of a file.

        Raises:
            OSError: it is not there or cannot be read.
        """
        filesystem, root = self._filesystem()
        with filesystem.open(f"{root}/{name}", "rb") as stream:
            return bytes(stream.read())

    def blocks(self, name: str, *, skip: int) -> Iterator[bytes]:
        """The content of a file after its first `skip` bytes, a few megabytes at a time."""
        filesystem, root = self._filesystem()
        with filesystem.open(f"{root}/{name}", "rb") as stream:
            stream.seek(skip)
            while block := stream.read(_BLOCK_BYTES):
                yield block

    def _filesystem(self) -> tuple[Any, str]:
        import fsspec

        try:
            filesystem, root = fsspec.core.url_to_fs(self.address.removeprefix(_CACHED_PATH))
        except (ImportError, ValueError) as error:
            raise UserError(f"cannot reach {self.address}: {error}") from error
        return filesystem, root
