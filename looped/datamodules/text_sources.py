"""Sources made of text files: the standard library, and the user's own."""

import platform
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from looped.datamodules.input_files import InputFile, find_files, inventory, reading
from looped.datamodules.sources import Document, SourceRequest
from looped.errors import UserError

# Directories of the standard library that hold tests, foreign packages or caches.
_NOT_STDLIB_TEXT = frozenset(
    {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}
)
_BLOCK_BYTES = 2**20


class TextFiles:
    """One document per UTF-8 file, or several with a separator between them.

    Args:
        name: what the record of a run calls the source.
        files: the files, in the order in which they are read.
        separator: text between two documents; null takes each file as one document.
    """

    def __init__(
        self, name: str, files: Sequence[InputFile], *, separator: str | None = None
    ) -> None:
        self.name = name
        self.undecodable = 0
        self._files = list(files)
        self._separator = separator

    def documents(self) -> Iterator[Document]:
        """Every document that is UTF-8; the others are skipped and counted.

        Raises:
            UserError: no document is UTF-8, or a file cannot be read.
        """
        self.undecodable = 0
        decoded = 0
        for file in self._files:
            for content in self._contents(file):
                try:
                    document = Document(content.decode("utf-8"), file.held_out)
                except UnicodeDecodeError:
                    self.undecodable += 1
                else:
                    decoded += 1
                    yield document
        if decoded == 0:
            raise UserError(f"none of the {len(self._files)} files of {self.name} is UTF-8 text")

    def size_bytes(self) -> int | None:
        """The sum of the file sizes."""
        return sum(file.size_bytes() for file in self._files)

    def inventory(self) -> dict[str, Any]:
        """Number, size and digest of the files."""
        return inventory(self._files)

    def _contents(self, file: InputFile) -> Iterator[bytes]:
        """The documents of a file, holding one of them and one block in memory."""
        with reading(file) as stream:
            if self._separator is None:
                yield stream.read()
            else:
                yield from _pieces(stream, self._separator.encode("utf-8"))


def _pieces(stream: BinaryIO, separator: bytes) -> Iterator[bytes]:
    rest = b""
    while block := stream.read(_BLOCK_BYTES):
        *pieces, rest = (rest + block).split(separator)
        yield from pieces
    yield rest


def stdlib_source() -> TextFiles:
    """The .py files of the running Python's standard library, without its tests.

    About 12 MB in 700 files for Python 3.11: text that every machine has.

    Raises:
        UserError: this Python comes without the sources of its library.
    """
    root = Path(sysconfig.get_paths()["stdlib"])
    paths = [
        path
        for path in root.rglob("*.py")
        if not _NOT_STDLIB_TEXT.intersection(path.relative_to(root).parts[:-1])
    ]
    if not paths:
        raise UserError(f"this Python has no library sources in {root}; use --source text instead")
    paths.sort(key=lambda path: path.relative_to(root).as_posix())
    name = f"stdlib-{platform.python_version()}"
    return TextFiles(name, [InputFile(str(path)) for path in paths])


def text_source(request: SourceRequest) -> TextFiles:
    """The user's own files.

    Raises:
        UserError: a pattern matches nothing, or the separator is empty.
    """
    if request.separator == "":
        raise UserError("separator '' cannot stand between two documents: give some text")
    files = find_files(request.paths, request.val_paths)
    return TextFiles("text", files, separator=request.separator)
