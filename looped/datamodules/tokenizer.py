"""Text to token ids and back, and how many bytes of text each token stands for.

A tokenizer is named by a specification. `bpe:N` is a byte-level BPE of N tokens, BOS among them,
trained on the training documents: same documents, same tokenizer.

Text is text: the spelling of a special token inside a document is encoded like any other
characters, so that only the packing puts BOS into a row.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

import numpy as np
import numpy.typing as npt
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from looped.errors import UserError

BOS = "<|bos|>"
BYTE_VALUES = 256
# Word counts of more text would cost memory and change the merges little.
BPE_TRAINING_CHARACTERS = 256 * 2**20

_BPE_SPECIFICATION = re.compile(r"bpe:(\d+)")


class Tokenizer:
    """A `tokenizers.Tokenizer` with a BOS token and the bytes of its tokens.

    Args:
        backend: the tokenizer that does the work.
        bos: spelling of its BOS token.

    Raises:
        UserError: `backend` has no such token.

    Attributes:
        vocab_size: number of tokens, specials included.
        bos: id of the token that begins a document.
    """

    def __init__(self, backend: tokenizers.Tokenizer, *, bos: str = BOS) -> None:
        bos_id = backend.token_to_id(bos)
        if bos_id is None:
            raise UserError(f"the tokenizer has no token {bos!r} to begin documents with")
        self._backend = backend
        self._backend.encode_special_tokens = True
        self.vocab_size: int = backend.get_vocab_size()
        self.bos: int = bos_id

    @classmethod
    def from_json(cls, text: str) -> "Tokenizer":
        """Rebuild a tokenizer from `to_json`."""
        return cls(tokenizers.Tokenizer.from_str(text))

    def to_json(self) -> str:
        """The whole tokenizer in the `tokenizer.json` format."""
        return str(self._backend.to_str())

    def encode_batch(self, texts: Sequence[str]) -> list[npt.NDArray[np.uint32]]:
        """Token ids of each text, without BOS; the texts are shared out over all cores."""
        encodings = self._backend.encode_batch_fast(list(texts), add_special_tokens=False)
        return [np.array(encoding.ids, dtype=np.uint32) for encoding in encodings]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of `tokens`, with specials spelled out."""
        return str(self._backend.decode(list(tokens), skip_special_tokens=False))

    def token_bytes(self) -> npt.NDArray[np.int64]:
        """UTF-8 bytes of text that each token stands for, 0 for specials.

        Returns:
            Shape (vocab_size,). Their sum over a document's tokens is its length in UTF-8.
        """
        specials = self._backend.get_added_tokens_decoder()
        sizes = np.zeros(self.vocab_size, dtype=np.int64)
        for token, index in self._backend.get_vocab().items():
            if index not in specials:
                sizes[index] = len(token)  # the byte-level alphabet: one character is one byte
        return sizes


def bpe_size(specification: str) -> int | None:
    """N of `bpe:N`; null when the specification is no such thing.

    Raises:
        UserError: N is too small to hold every byte and BOS.
    """
    match = _BPE_SPECIFICATION.fullmatch(specification)
    if match is None:
        return None
    size = int(match.group(1))
    if size <= BYTE_VALUES:
        raise UserError(
            f"tokenizer {specification}: a byte-level BPE needs at least {BYTE_VALUES + 1} tokens"
            f" ({BYTE_VALUES} bytes and BOS)"
        )
    return size


def train_bpe(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """A byte-level BPE trained on the first `BPE_TRAINING_CHARACTERS` of `texts`.

    Args:
        texts: the training documents; consumed once.
        vocab_size: number of tokens, BOS included.

    Raises:
        UserError: the texts hold too few different pieces for so many tokens.
    """
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[BOS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    backend.train_from_iterator(_first_bytes(texts, BPE_TRAINING_CHARACTERS), trainer)
    found = backend.get_vocab_size()
    if found < vocab_size:
        raise UserError(
            f"the training text yields only {found} tokens, not {vocab_size}:"
            f" use --tokenizer bpe:{found} or more text"
        )
    return Tokenizer(backend)


def _first_bytes(texts: Iterable[str], limit: int) -> Iterator[str]:
    """The texts until they hold `limit` characters together, the one that crosses it included."""
    taken = 0

    def within_limit(text: str) -> bool:
        nonlocal taken
        before, taken = taken, taken + len(text)
        return before < limit

    return takewhile(within_limit, texts)
