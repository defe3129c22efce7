"""Tokens stand for exactly the bytes of the text."""

import subprocess
import sys

import numpy as np
import pytest

from looped.datamodules import tokenizer as tokenizer_module
from looped.datamodules.tokenizer import BOS, Tokenizer, bpe_size, train_bpe
from looped.errors import UserError

TEXTS = [
    "def café(x):\n\treturn '日本' * 3  # 🙂\r\n",
    f"the spelling {BOS} is only text here",
    "  spaces   and\u00a0others\x00\x7f",
    "",
]


@pytest.fixture(scope="module")
def trained() -> Tokenizer:
    return train_bpe(TEXTS * 5, 280)


def test_token_bytes_add_up_to_the_bytes_of_a_document(trained):
    """Without it, bits per byte would be wrong."""
    sizes = trained.token_bytes()
    for text, tokens in zip(TEXTS, trained.encode_batch(TEXTS), strict=True):
        assert sizes[tokens].sum() == len(text.encode("utf-8"))
    assert sizes[trained.bos] == 0
    assert sizes.dtype == np.int64
    assert len(sizes) == trained.vocab_size == 280


def test_decoding_gives_the_text_back(trained):
    """Without it, a token would stand for other bytes than those it was made from."""
    assert [trained.decode(tokens) for tokens in trained.encode_batch(TEXTS)] == TEXTS


def test_text_never_becomes_a_special_token(trained):
    """Without it, a document that mentions BOS would look like two documents."""
    assert all(trained.bos not in tokens for tokens in trained.encode_batch(TEXTS))


def test_a_stored_tokenizer_encodes_alike(trained):
    """Without it, data and tokenizer.json would drift apart."""
    again = Tokenizer.from_json(trained.to_json())
    for one, other in zip(trained.encode_batch(TEXTS), again.encode_batch(TEXTS), strict=True):
        assert one.tolist() == other.tolist()


def test_training_is_the_same_in_another_process(trained):
    """Without it, two machines would give the same data different fingerprints."""
    program = (
        "from looped.datamodules.tokenizer import train_bpe;"
        f"print(train_bpe({TEXTS!r} * 5, 280).to_json(), end='')"
    )
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", program], capture_output=True, check=True
    )
    assert done.stdout.decode("utf-8") == trained.to_json()


def test_too_little_text_for_the_vocabulary_is_refused():
    """Without it, the model would have tokens that no text can contain."""
    with pytest.raises(UserError, match=r"yields only 2\d\d tokens, not 5000: use --tokenizer bpe"):
        train_bpe(["only this"], 5000)


def test_training_text_is_bounded(monkeypatch):
    """Without it, the word counts of a 10 GB source would fill the memory."""
    monkeypatch.setattr(tokenizer_module, "BPE_TRAINING_CHARACTERS", 10)
    given = iter(["123456", "789012", "never read"])
    assert train_bpe(given, 257).vocab_size == 257
    assert list(given) == []  # the first text over the limit is looked at, no more


@pytest.mark.parametrize(
    ("specification", "size"), [("bpe:1024", 1024), ("bpe:257", 257), ("bytes", None)]
)
def test_bpe_specifications(specification, size):
    """Without it, a specification would be taken for another one."""
    assert bpe_size(specification) == size


def test_a_vocabulary_without_room_for_every_byte_is_refused():
    """Without it, some text could not be encoded."""
    with pytest.raises(UserError, match="at least 257"):
        bpe_size("bpe:256")
