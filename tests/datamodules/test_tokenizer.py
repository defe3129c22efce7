"""Tokens stand for exactly the bytes of the text."""

import numpy as np
import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from looped.datamodules.make_tokenizer import train_bpe
from looped.datamodules.tokenizer import BOS, ByteTokenizer, Tokenizer
from looped.errors import UserError

TEXTS = [
    "def café(x):\n\treturn '日本' * 3  # 🙂\r\n",
    f"the spelling {BOS} is only text here",
    "  spaces   and\u00a0others\x00\x7f\u00ad",
    "",
]


@pytest.fixture(scope="module", params=["bpe", "bytes"])
def tokenizer(request) -> Tokenizer:
    return train_bpe(TEXTS * 5, 280) if request.param == "bpe" else ByteTokenizer()


def test_token_bytes_add_up_to_the_bytes_of_a_document(tokenizer):
    """Without it, bits per byte would be wrong."""
    sizes = tokenizer.token_bytes()
    for text, tokens in zip(TEXTS, tokenizer.encode_batch(TEXTS), strict=True):
        assert sizes[tokens].sum() == len(text.encode("utf-8"))
    assert sizes[tokenizer.bos] == 0
    assert sizes.dtype == np.int64
    assert len(sizes) == tokenizer.vocab_size


def test_decoding_gives_the_text_back(tokenizer):
    """Without it, a token would stand for other bytes than those it was made from."""
    assert [tokenizer.decode(tokens) for tokens in tokenizer.encode_batch(TEXTS)] == TEXTS


def test_text_never_becomes_a_special_token(tokenizer):
    """Without it, a document that mentions BOS would look like two documents."""
    assert all(tokenizer.bos not in tokens for tokens in tokenizer.encode_batch(TEXTS))


def test_a_stored_tokenizer_encodes_alike(tokenizer):
    """Without it, data and tokenizer.json would drift apart (bytes have a way of their own)."""
    again = Tokenizer.from_json(tokenizer.to_json())
    assert (again.vocab_size, again.bos) == (tokenizer.vocab_size, tokenizer.bos)
    for one, other in zip(tokenizer.encode_batch(TEXTS), again.encode_batch(TEXTS), strict=True):
        assert one.tolist() == other.tolist()


def test_bytes_are_bytes():
    """Without it, a token would not be the byte it is named after."""
    tokenizer = ByteTokenizer()
    assert tokenizer.encode_batch(TEXTS)[0].tolist() == list(TEXTS[0].encode("utf-8"))
    assert (tokenizer.vocab_size, tokenizer.bos) == (257, 256)


def word_level(words, *, specials=()) -> tokenizers.Tokenizer:
    vocabulary = {word: number for number, word in enumerate(words)}
    backend = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token=words[0]))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.add_special_tokens(list(specials))
    return backend


def test_truncation_and_padding_of_a_foreign_tokenizer_are_off():
    """Without it, its model's context length would cut every document, or pad it."""
    backend = word_level(["a", "b"], specials=["<s>"])
    backend.enable_truncation(max_length=2)
    backend.enable_padding(length=9)
    tokenizer = Tokenizer.from_json(backend.to_str())
    assert [t.tolist() for t in tokenizer.encode_batch(["a b a b", "b"])] == [[0, 1, 0, 1], [1]]


def test_a_post_processor_adds_nothing():
    """Without it, documents would begin with BOS twice."""
    backend = word_level(["a", "b"], specials=["<s>"])
    backend.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 2)]
    )
    assert Tokenizer(backend).encode_batch(["a b"])[0].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("specials", "bos", "found"),
    [
        (["<|endoftext|>"], None, "<|endoftext|>"),
        (["<|endoftext|>", "<s>"], None, "<s>"),
        (["<|endoftext|>", "<s>"], "<|endoftext|>", "<|endoftext|>"),
        (["<start>"], "<start>", "<start>"),
    ],
)
def test_bos_is_found_or_named(specials, bos, found):
    """Without it, documents would be separated by an ordinary token."""
    backend = word_level(["a", "b"], specials=specials)
    assert Tokenizer(backend, bos=bos).bos == backend.token_to_id(found)


@pytest.mark.parametrize(
    ("bos", "message"), [(None, "name one with --bos"), ("<s>", "has no token '<s>'")]
)
def test_a_tokenizer_without_bos_is_refused(bos, message):
    """Without it, two documents would run into each other."""
    with pytest.raises(UserError, match=message):
        Tokenizer(word_level(["a", "b"]), bos=bos)


def test_vocab_size_reaches_the_greatest_id():
    """Without it, a vocabulary with gaps would have ids beyond its size."""
    backend = tokenizers.Tokenizer(models.WordLevel({"a": 0, "<s>": 70_000}, unk_token="a"))
    assert Tokenizer(backend).vocab_size == 70_001


def test_other_alphabets_count_their_spelling():
    """Without it, SentencePiece's space mark would count three bytes, a fallback byte six."""
    vocabulary = {"\u2581the": 0, "<0x0A>": 1, "##ing": 2, "é": 3, "<s>": 4}
    backend = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token="é"))
    backend.add_special_tokens(["<s>"])
    backend.decoder = decoders.Metaspace()
    assert Tokenizer(backend).token_bytes().tolist() == [4, 1, 3, 2, 0]


def test_an_empty_vocabulary_is_refused():
    """Without it, an untrained tokenizer.json would be a traceback of max()."""
    with pytest.raises(UserError, match="empty vocabulary"):
        Tokenizer(tokenizers.Tokenizer(models.BPE()))


def test_an_id_beyond_all_bounds_is_refused():
    """Without it, the table of token bytes would fill the memory."""
    with pytest.raises(UserError, match="ids up to 4000000000"):
        Tokenizer(tokenizers.Tokenizer(models.WordLevel({"<s>": 4_000_000_000}, unk_token="<s>")))


def test_a_word_without_a_token_is_one_line():
    """Without it, a word-level tokenizer.json without UNK would be a bare Exception."""
    tokenizer = Tokenizer(tokenizers.Tokenizer(models.WordLevel({"<s>": 0}, unk_token="[UNK]")))
    with pytest.raises(UserError, match="cannot encode this text: "):
        tokenizer.encode_batch(["word"])
