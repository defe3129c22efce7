"""Text to token ids and back, and how many bytes of text each token stands for.

Text is text: the spelling of a special token inside a document is encoded like any other
characters, so that only the packing puts BOS into a row.
"""

import json
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from looped.errors import UserError

BOS = "<|bos|>"
# How others spell the token that begins a document, or that stands between two.
_KNOWN_BOS = (
    BOS,
    "<|begin_of_text|>",
    "<bos>",
    "<s>",
    "[BOS]",
    "<|startoftext|>",
    "<|endoftext|>",
    "[CLS]",
)
BYTE_VALUES = 256
# Beyond it only tables of its tokens would fill the memory; the largest in use are below 2**19.
MAX_VOCAB_SIZE = 2**24

_BYTE_FALLBACK = re.compile(r"<0x[0-9A-F]{2}>")


class Tokenizer:
    """A `tokenizers.Tokenizer` with a BOS token and the bytes of its tokens.

    Args:
        backend: the tokenizer that does the work; its truncation and padding are switched off.
        bos: spelling or id of its BOS token; null looks for a usual one.

    Raises:
        UserError: `backend` has no such token, none at all, or ids beyond `MAX_VOCAB_SIZE`.

    Attributes:
        vocab_size: number of tokens, specials included: one more than the greatest id.
        bos: id of the token that begins a document.
    """

    def __init__(self, backend: tokenizers.Tokenizer, *, bos: str | int | None = None) -> None:
        backend.no_truncation()
        backend.no_padding()
        backend.encode_special_tokens = True
        self._backend = backend
        self._vocabulary: dict[str, int] = backend.get_vocab()
        if not self._vocabulary:
            raise UserError("the tokenizer has an empty vocabulary: name another one")
        self.vocab_size = max(self._vocabulary.values()) + 1
        if self.vocab_size > MAX_VOCAB_SIZE:
            raise UserError(
                f"the tokenizer has ids up to {self.vocab_size - 1}: at most {MAX_VOCAB_SIZE}"
                " tokens are taken"
            )
        self.bos = self._find_bos(bos)

    @classmethod
    def from_json(cls, text: str, *, bos: str | int | None = None) -> "Tokenizer":
        """A tokenizer from the content of a tokenizer.json."""
        return cls(tokenizers.Tokenizer.from_str(text), bos=bos)

    def to_json(self) -> str:
        """The whole tokenizer in the `tokenizer.json` format."""
        return str(self._backend.to_str())

    def encode_batch(self, texts: Sequence[str]) -> list[npt.NDArray[np.uint32]]:
        """Token ids of each text, without BOS; the texts are shared out over all cores.

        Raises:
            UserError: the tokenizer has no token for a piece of a text.
        """
        try:
            encodings = self._backend.encode_batch_fast(list(texts), add_special_tokens=False)
        except Exception as error:  # the library raises bare Exceptions of its own
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UserError(f"the tokenizer cannot encode this text: {reason}") from error
        return [np.array(encoding.ids, dtype=np.uint32) for encoding in encodings]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of `tokens`, with specials spelled out."""
        return str(self._backend.decode(list(tokens), skip_special_tokens=False))

    def token_bytes(self) -> npt.NDArray[np.int64]:
        """UTF-8 bytes of text that each token stands for, 0 for specials.

        For byte-level tokenizers their sum over a document's tokens is its length in UTF-8. For
        others it is the length of the token's spelling (SentencePiece's mark taken as a space,
        WordPiece's continuation mark as nothing), which normalisation may make inexact.

        Returns:
            Shape (vocab_size,).
        """
        specials = self._backend.get_added_tokens_decoder()
        count = len if self._is_byte_level() else _spelled_bytes
        sizes = np.zeros(self.vocab_size, dtype=np.int64)
        for token, index in self._vocabulary.items():
            if index not in specials:
                sizes[index] = count(token)
        return sizes

    def _is_byte_level(self) -> bool:
        """Whether one character of a token's spelling stands for one byte."""
        content = json.loads(self.to_json())
        return "ByteLevel" in json.dumps([content["pre_tokenizer"], content["decoder"]])

    def _find_bos(self, spelling: str | int | None) -> int:
        if isinstance(spelling, int):
            return spelling
        for known in _KNOWN_BOS if spelling is None else (spelling,):
            if known in self._vocabulary:
                return self._vocabulary[known]
        if spelling is not None:
            raise UserError(f"the tokenizer has no token {spelling!r} to begin documents with")
        raise UserError(
            "the tokenizer has none of the usual tokens to begin a document with"
            f" ({', '.join(_KNOWN_BOS)}): name one with --bos"
        )


def _spelled_bytes(token: str) -> int:
    if _BYTE_FALLBACK.fullmatch(token):
        return 1
    return len(token.removeprefix("##").replace("\u2581", " ").encode("utf-8"))


class ByteTokenizer(Tokenizer):
    """The 256 bytes, each its own token, and BOS as token 256."""

    def __init__(self) -> None:
        vocabulary = {spelling: byte for byte, spelling in enumerate(_byte_spellings())}
        backend = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        backend.decoder = decoders.ByteLevel()
        backend.add_special_tokens([BOS])
        super().__init__(backend)

    def encode_batch(self, texts: Sequence[str]) -> list[npt.NDArray[np.uint32]]:
        """The bytes of each text."""
        return [np.frombuffer(t.encode("utf-8"), dtype=np.uint8).astype(np.uint32) for t in texts]


def _byte_spellings() -> list[str]:
    """The character that stands for each byte: itself if it is printable, else one above 255."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(others)) for byte in range(BYTE_VALUES)]
