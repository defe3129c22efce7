"""Encoding in batches ahead of time changes nothing."""

import pytest

from looped.datamodules import encoding
from looped.datamodules.encoding import encode_documents
from looped.datamodules.make_tokenizer import train_bpe
from looped.datamodules.split import SplitDocument

TEXTS = [f"text number {number}" for number in range(50)]
DOCUMENTS = [SplitDocument(text, len(text), held_out=False) for text in TEXTS]


@pytest.mark.parametrize("batch_bytes", [1, 40, 10**6])
def test_each_document_gets_its_own_tokens_in_order(monkeypatch, batch_bytes):
    """Without it, tokens would be written under another document's split."""
    monkeypatch.setattr(encoding, "BATCH_BYTES", batch_bytes)
    tokenizer = train_bpe(TEXTS, 270)
    pairs = list(encode_documents(DOCUMENTS, tokenizer))
    assert [document for document, _ in pairs] == DOCUMENTS
    assert [tokenizer.decode(tokens) for _, tokens in pairs] == TEXTS


def test_an_error_of_the_source_arrives():
    """Without it, a source that breaks off would look complete."""

    def broken():
        yield DOCUMENTS[0]
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(encode_documents(broken(), train_bpe(TEXTS, 270)))
