"""Documents of any length into rows of one length, with every token accounted for.

A packer takes the tokens of one document at a time and hands back the rows that are full. BOS is
put before each document here, and nowhere else. What it was given and what became of it add up:

    tokens = rows * row_length + cropped
"""

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
