"""Documents of any length into rows of one length, with every token accounted for.

A packer takes the tokens of one document at a time and hands back the rows that are full. BOS is
put before each document here, and nowhere else. What it was given and what became of it add up:

    tokens = rows * row_length + cropped
"""

from bisect import bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Tokens = npt.NDArray[np.uint32]


@dataclass
class PackingCounts:
    """What went into a packer and what came out.

    Attributes:
        documents: documents taken.
        tokens: their tokens, one BOS for each included.
        cropped: tokens of these that are in no row.
        rows: rows handed back.
    """

    documents: int = 0
    tokens: int = 0
    cropped: int = 0
    rows: int = 0


class Packer(Protocol):
    """What `prepare` needs of a packer."""

    counts: PackingCounts

    def add(self, document: Tokens) -> Iterator[Tokens]:
        """Take one document without BOS; yields blocks of rows, shape (n, row_length)."""
        ...

    def finish(self) -> Iterator[Tokens]:
        """Yield what is still complete, and count the rest as cropped."""
        ...


class ConcatPacker:
    """One endless line of BOS, document, BOS, document, ..., cut into rows.

    Nothing is lost but the last incomplete row; a document may begin anywhere in a row.

    Args:
        row_length: tokens per row, T + 1.
        bos: id of the token put before each document.
    """

    def __init__(self, *, row_length: int, bos: int) -> None:
        self.counts = PackingCounts()
        self._row_length = row_length
        self._bos = np.array([bos], dtype=np.uint32)
        self._rest = np.empty(0, dtype=np.uint32)

    def add(self, document: Tokens) -> Iterator[Tokens]:
        """Append BOS and the document; yields the rows that this completes."""
        self.counts.documents += 1
        self.counts.tokens += 1 + len(document)
        line = np.concatenate([self._rest, self._bos, document])
        rows, rest = divmod(len(line), self._row_length)
        self._rest = line[len(line) - rest :]
        if rows:
            self.counts.rows += rows
            yield line[: len(line) - rest].reshape(rows, self._row_length)

    def finish(self) -> Iterator[Tokens]:
        """Count the incomplete row as cropped."""
        self.counts.cropped += len(self._rest)
        self._rest = self._rest[:0]
        yield from ()


class BestFitPacker:
    """Rows that begin with BOS and cut documents as rarely as possible.

    A row is filled with the longest buffered document that fits; when none fits, the shortest is
    cropped to the room that is left and the rest of it is dropped. Of equally long documents the
    oldest comes first. Choosing takes a binary search among the buffered lengths.

    Args:
        row_length: tokens per row, T + 1.
        bos: id of the token put before each document.
        buffer_documents: documents to choose from.
    """

    def __init__(self, *, row_length: int, bos: int, buffer_documents: int = 1000) -> None:
        self.counts = PackingCounts()
        self._row_length = row_length
        self._bos = np.array([bos], dtype=np.uint32)
        self._buffer_documents = buffer_documents
        self._documents: dict[int, Tokens] = {}
        # (length, -serial) in order: the last entry up to a length is its oldest document.
        self._lengths: list[tuple[int, int]] = []
        self._serial = 0
        self._row: list[Tokens] = []
        self._room = row_length

    def add(self, document: Tokens) -> Iterator[Tokens]:
        """Put a document into the buffer; once that is full, one goes into the current row."""
        document = np.concatenate([self._bos, document])
        self.counts.documents += 1
        self.counts.tokens += len(document)
        self._serial += 1
        self._documents[self._serial] = document
        insort(self._lengths, (len(document), -self._serial))
        if len(self._lengths) == self._buffer_documents:
            yield from self._place_one()

    def finish(self) -> Iterator[Tokens]:
        """Empty the buffer; the last row, if it stays incomplete, is counted as cropped."""
        while self._lengths:
            yield from self._place_one()
        self.counts.cropped += self._row_length - self._room
        self._row, self._room = [], self._row_length

    def _place_one(self) -> Iterator[Tokens]:
        place = bisect_right(self._lengths, (self._room, 0))
        if place == 0:  # none fits: the oldest of the shortest
            place = bisect_right(self._lengths, (self._lengths[0][0], 0))
        _, serial = self._lengths.pop(place - 1)
        document = self._documents.pop(-serial)
        part = document[: self._room]
        self.counts.cropped += len(document) - len(part)
        self._row.append(part)
        self._room -= len(part)
        if self._room == 0:
            self.counts.rows += 1
            yield np.concatenate(self._row).reshape(1, self._row_length)
            self._row, self._room = [], self._row_length


PACKERS = {"concat": ConcatPacker, "best_fit": BestFitPacker}
