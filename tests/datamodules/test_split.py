"""Documents fall on one side, once, whatever their order."""

import pytest

from looped.datamodules.sources import Document
from looped.datamodules.split import DocumentSplit


class Listed:
    """A source that is a list."""

    name = "listed"

    def __init__(self, documents):
        self._documents = [Document(d) if isinstance(d, str) else d for d in documents]
        self.undecodable = 0

    def documents(self):
        yield from self._documents
        self.undecodable = 3

    def size_bytes(self):
        return None


def sides(documents, **changes) -> dict[str, bool]:
    settings = {"seed": 0, "val_fraction": 0.25} | changes
    split = DocumentSplit(Listed(documents), **settings)
    return {d.text: d.held_out for d in split.documents()}


TEXTS = [f"document {number}" for number in range(2000)]


def test_the_share_is_the_one_asked_for():
    """Without it, the validation split would have another size."""
    assert sum(sides(TEXTS).values()) == pytest.approx(500, abs=80)  # four standard deviations


def test_the_side_depends_on_the_content_only():
    """Without it, a new file at the front would move documents between the splits."""
    assert sides(reversed(TEXTS)) == sides(TEXTS)
    assert sides(TEXTS[:10]).items() <= sides(TEXTS).items()


def test_another_seed_gives_another_split():
    """Without it, the seed would be decoration."""
    assert sides(TEXTS, seed=1) != sides(TEXTS) == sides(TEXTS, seed=0)
    assert sides(TEXTS, seed=-1) != sides(TEXTS)


def test_a_named_side_is_obeyed():
    """Without it, named validation shards would be trained on."""
    named = [Document(text, held_out=number % 2 == 0) for number, text in enumerate(TEXTS)]
    assert list(sides(named).values()) == [True, False] * 1000


def test_duplicates_and_empty_documents_are_dropped_and_counted():
    """Without it, a repeated document could be in both splits."""
    documents = ["a", "b", "", Document("a", held_out=True), "b", "c", ""]
    split = DocumentSplit(Listed(documents), seed=0, val_fraction=0.5)
    for _ in range(2):  # a second pass starts to count again
        kept = list(split.documents())
        assert [d.text for d in kept] == ["a", "b", "c"]
        assert (split.skipped.duplicates, split.skipped.empty) == (2, 2)
        assert split.skipped.undecodable == 3


def test_bytes_are_those_of_utf8():
    """Without it, bits per byte would be per character."""
    (document,) = DocumentSplit(Listed(["é日"]), seed=0, val_fraction=0.5).documents()
    assert document.bytes == 5


def test_text_that_no_bytes_can_hold_is_skipped_and_counted():
    """Without it, one half of a surrogate pair in a JSON file would be a traceback."""
    split = DocumentSplit(Listed(["a", "b\ud800"]), seed=0, val_fraction=0.5)
    assert [document.text for document in split.documents()] == ["a"]
    assert split.skipped.undecodable == 3 + 1


def test_reading_stops_after_max_documents():
    """Without it, an endless dataset would be read to its end."""
    split = DocumentSplit(Listed(["a", "", "b", "c"]), seed=0, val_fraction=0.5, max_documents=3)
    assert [document.text for document in split.documents()] == ["a", "b"]
