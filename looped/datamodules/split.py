"""Which documents there are and on which side each one falls.

Both answers depend on the content of a document alone (and on the seed), so they do not change
with the order of the source, and equal documents could never be on both sides even if duplicates
were kept.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from looped.datamodules.sources import Document, Source

DEFAULT_VAL_FRACTION = 0.05


@dataclass(frozen=True, slots=True)
class SplitDocument:
    """A document that is kept, with its side.

    Attributes:
        text: the document itself.
        bytes: its length in UTF-8.
        held_out: true for validation.
    """

    text: str
    bytes: int
    held_out: bool


@dataclass
class SkipCounts:
    """Documents left out, by reason."""

    empty: int = 0
    duplicates: int = 0
    undecodable: int = 0


class DocumentSplit:
    """Drops empty and repeated documents of a source and deals the others to two sides.

    Args:
        source: where the documents come from.
        seed: another seed gives another split.
        val_fraction: expected share of validation documents, for those that the source does
            not name itself.
        max_documents: read only so many documents of the source; null reads all.

    Attributes:
        skipped: what the newest pass left out.
        is_named: whether the source named the side of a document in the newest pass, so that
            nothing was drawn.
    """

    def __init__(
        self,
        source: Source,
        *,
        seed: int,
        val_fraction: float,
        max_documents: int | None = None,
    ) -> None:
        self.skipped = SkipCounts()
        self.is_named = False
        self._source = source
        self._key = seed.to_bytes(16, "little", signed=True)
        self._max_documents = max_documents
        self._threshold = int(val_fraction * 2**64)

    def documents(self) -> Iterator[SplitDocument]:
        """Every kept document in the order of the source; counts what is skipped."""
        self.skipped = SkipCounts()
        seen: set[bytes] = set()
        unencodable = 0
        for document in islice(self._source.documents(), self._max_documents):
            self.is_named |= document.held_out is not None
            try:
                content = document.text.encode("utf-8")
            except UnicodeEncodeError:  # half of a surrogate pair, which JSON can spell
                unencodable += 1
                continue
            if not content:
                self.skipped.empty += 1
                continue
            digest = hashlib.blake2b(content, digest_size=16).digest()
            if digest in seen:
                self.skipped.duplicates += 1
                continue
            seen.add(digest)
            yield SplitDocument(document.text, len(content), self._held_out(document, digest))
        self.skipped.undecodable = self._source.undecodable + unencodable

    def _held_out(self, document: Document, digest: bytes) -> bool:
        if document.held_out is not None:
            return document.held_out
        draw = hashlib.blake2b(digest, digest_size=8, key=self._key).digest()
        return int.from_bytes(draw, "little") < self._threshold
