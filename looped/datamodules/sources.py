"""Where text comes from: a source yields documents in an order that never changes.

A source is read twice when a tokenizer is trained on it, so `documents` can be called again and
gives the same documents each time. It is streamed: a few documents are in memory at a time.
"""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

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
        undecodable: documents of the newest pass that could not be read and were left out.
    """

    name: str
    undecodable: int

    def documents(self) -> Iterator[Document]:
        """Every document, in a fixed order; those named as validation documents come first.

        Of equal documents the first is kept, so that none is lost to training.
        """
        ...

    def size_bytes(self) -> int | None:
        """Bytes of text, for the progress display; null when not known beforehand."""
        ...

    def inventory(self) -> dict[str, Any]:
        """Plain values that change when the source does, as far as that is cheap to tell."""
        ...


@dataclass(frozen=True, kw_only=True)
class SourceRequest:
    """Which source, and what it needs to know.

    Attributes:
        name: one of `OPTIONS`.
        paths: files, URLs or globs.
        val_paths: files, URLs or globs whose documents are the validation split.
        separator: text between two documents of a file; null takes each file as one document.
        column: name of the field that holds the text; null means `text`.
        dataset: name, local directory or preset of a Hugging Face dataset.
        subset: configuration of that dataset; null takes its default one.
    """

    name: str
    paths: tuple[str, ...] = ()
    val_paths: tuple[str, ...] = ()
    separator: str | None = None
    column: str | None = None
    dataset: str | None = None
    subset: str | None = None


# What each source takes besides its name; the first one it must have.
OPTIONS: dict[str, tuple[str, ...]] = {
    "stdlib": (),
    "text": ("paths", "val_paths", "separator"),
    "jsonl": ("paths", "val_paths", "column"),
    "parquet": ("paths", "val_paths", "column"),
    "hub": ("dataset", "subset", "column"),
    "packed-parquet": ("paths",),
}


def open_source(request: SourceRequest) -> Source:
    """The source of documents that was asked for.

    Args:
        request: one that `check_options` lets pass, and that asks for documents.

    Raises:
        UserError: its files are not there.
    """
    from looped.datamodules import hub_source, table_sources, text_sources

    if request.name == "stdlib":
        return text_sources.stdlib_source()
    if request.name == "text":
        return text_sources.text_source(request)
    if request.name == "jsonl":
        return table_sources.jsonl_source(request)
    if request.name == "parquet":
        return table_sources.parquet_source(request)
    return hub_source.hub_source(request)


def check_options(request: SourceRequest) -> None:
    """Refuse a request whose options do not go with its source.

    Raises:
        UserError: there is no such source (the nearest name is offered), it lacks its files, or
            an option is not for it.
    """
    if request.name not in OPTIONS:
        nearest = difflib.get_close_matches(request.name, OPTIONS, n=1)
        hint = f"did you mean {nearest[0]}?" if nearest else f"choose {', '.join(OPTIONS)}"
        raise UserError(f"unknown source {request.name!r}: {hint}")
    allowed = OPTIONS[request.name]
    for option in ("paths", "val_paths", "separator", "column", "dataset", "subset"):
        if getattr(request, option) not in (None, ()) and option not in allowed:
            raise UserError(f"source {request.name} takes no {option}")
    if allowed and not getattr(request, allowed[0]):
        raise UserError(f"source {request.name} needs to be told where: give --{allowed[0]}")
