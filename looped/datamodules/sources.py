"""Where text comes from: a source yields documents in an order that never changes.

A source is read twice when a tokenizer is trained on it, so `documents` can be called again and
gives the same documents each time. It is streamed: a few documents are in memory at a time.
"""

import difflib
import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from looped.errors import UserError


@dataclass(frozen=True, slots=True)
class Document:
    """One unit of text: never split between training and validation.

    Attributes:
        text: the document itself.
        held_out: true when the source names it a validation document, false when it names it a
            training document, null when the seeded split decides.
    """

    text: str
    held_out: bool | None = None


class Source(Protocol):
    """What `prepare` needs of a source.

    Attributes:
        name: what the record of a run calls it.
        undecodable: documents of the newest pass that were not UTF-8 and were left out.
    """

    name: str
    undecodable: int

    def documents(self) -> Iterator[Document]:
        """Every document, in a fixed order."""
        ...

    def size_bytes(self) -> int | None:
        """Bytes to read, for the progress display; null when that is not known beforehand."""
        ...


@dataclass(frozen=True)
class InputFile:
    """A file of a source.

    Attributes:
        path: where it is.
        held_out: as in `Document`.
    """

    path: Path
    held_out: bool | None


def find_files(patterns: Sequence[str], val_patterns: Sequence[str] = ()) -> list[InputFile]:
    """The files that match, in order of their names, each one once.

    Args:
        patterns: paths or globs (`**` for any depth).
        val_patterns: the same for validation documents; when there are any, all other files hold
            training documents, and when there are none, the seeded split decides.

    Raises:
        UserError: a pattern matches no file.
    """
    held_out = set().union(*(_matches(pattern) for pattern in val_patterns))
    others = set().union(*(_matches(pattern) for pattern in patterns)) - held_out
    side = False if val_patterns else None
    files = [InputFile(path, True) for path in held_out]
    files += [InputFile(path, side) for path in others]
    return sorted(files, key=lambda file: file.path)


def _matches(pattern: str) -> set[Path]:
    if Path(pattern).is_dir():
        raise UserError(f"{pattern} is a directory: name its files, for instance {pattern}/**/*")
    found = {Path(name) for name in glob.glob(pattern, recursive=True) if Path(name).is_file()}
    if not found:
        raise UserError(f"no file matches {pattern}")
    return found


@dataclass(frozen=True, kw_only=True)
class SourceRequest:
    """Which source, and what it needs to know.

    Attributes:
        name: `stdlib` or `text`.
        paths: files or globs.
        val_paths: files or globs whose documents are the validation split.
        separator: text between two documents of a file; null takes each file as one document.
    """

    name: str
    paths: tuple[str, ...] = ()
    val_paths: tuple[str, ...] = ()
    separator: str | None = None


# What each source takes besides its name.
OPTIONS = {
    "stdlib": (),
    "text": ("paths", "val_paths", "separator"),
}


def open_source(request: SourceRequest) -> Source:
    """The source that was asked for.

    Raises:
        UserError: there is no such source (the nearest name is offered), it lacks its files, or
            an option is not for it.
    """
    if request.name not in OPTIONS:
        nearest = difflib.get_close_matches(request.name, OPTIONS, n=1)
        hint = f"did you mean {nearest[0]}?" if nearest else f"choose {', '.join(OPTIONS)}"
        raise UserError(f"unknown source {request.name!r}: {hint}")
    for option in ("paths", "val_paths", "separator"):
        if getattr(request, option) and option not in OPTIONS[request.name]:
            raise UserError(f"source {request.name} takes no {option}")
    if "paths" in OPTIONS[request.name] and not request.paths:
        raise UserError(f"source {request.name} needs files: name them with --paths")

    from looped.datamodules import text_sources

    if request.name == "stdlib":
        return text_sources.stdlib_source()
    return text_sources.text_source(request)
