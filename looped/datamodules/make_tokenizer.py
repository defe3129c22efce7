"""From the name of a tokenizer to the tokenizer.

bpe:N              byte-level BPE of N tokens, BOS among them, trained on the training
documents: same documents, same tokenizer
bytes              the 256 bytes and BOS
FILE.json          a `tokenizer.json` of the library `tokenizers`
OWNER/NAME, NAME   the tokenizer of a model on the Hugging Face hub
"""

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from looped.datamodules.tokenizer import (
    BOS,
    BYTE_VALUES,
    MAX_VOCAB_SIZE,
    ByteTokenizer,
    Tokenizer,
)
from looped.errors import UserError

# Word counts of more text would cost memory and change the merges little.
BPE_TRAINING_CHARACTERS = 256 * 2**20

_BPE_SPECIFICATION = re.compile(r"bpe:(\d+)")


def bpe_size(specification: str) -> int | None:
    """N of `bpe:N`; null when the specification is no such thing.

    Raises:
        UserError: N is too small to hold every byte and BOS, or beyond `MAX_VOCAB_SIZE`.
    """
    match = _BPE_SPECIFICATION.fullmatch(specification)
    if match is None:
        return None
    digits = match.group(1).lstrip("0") or "0"
    if len(digits) > len(str(MAX_VOCAB_SIZE)) or int(digits) > MAX_VOCAB_SIZE:
        raise UserError(f"tokenizer bpe:N: N is at most {MAX_VOCAB_SIZE}, not {digits[:30]}")
    size = int(digits)
    if size <= BYTE_VALUES:
        raise UserError(
            f"tokenizer {specification}: a byte-level BPE needs at least {BYTE_VALUES + 1} tokens"
            f" ({BYTE_VALUES} bytes and BOS)"
        )
    return size


def check_bos(specification: str, bos: str | None) -> None:
    """Refuse a BOS token for a tokenizer that has its own.

    Raises:
        UserError: `bos` is another one.
    """
    if bos in (None, BOS):
        return
    if specification == "bytes" or bpe_size(specification) is not None:
        raise UserError(
            f"tokenizer {specification} begins documents with its own {BOS}: leave out --bos {bos}"
        )


def train_bpe(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """A byte-level BPE trained on the first `BPE_TRAINING_CHARACTERS` characters of `texts`.

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
    backend.train_from_iterator(_first_characters(texts, BPE_TRAINING_CHARACTERS), trainer)
    found = backend.get_vocab_size()
    if found < vocab_size:
        raise UserError(
            f"the training text yields only {found} tokens, not {vocab_size}:"
            f" use --tokenizer bpe:{found} or more text"
        )
    return Tokenizer(backend)


def load_tokenizer(specification: str, *, bos: str | int | None = None) -> Tokenizer:
    """The tokenizer of any specification but `bpe:N`.

    Args:
        specification: `bytes`, a file, or a name on the Hugging Face hub.
        bos: spelling or id of its BOS token; null looks for a usual one.

    Raises:
        UserError: no such file or name, or it has no BOS token.
    """
    if specification == "bytes":
        return ByteTokenizer()
    if specification.startswith(("bpe", "byte")):
        raise UserError(f"unknown tokenizer {specification!r}: write bpe:N (N tokens) or bytes")
    is_file = Path(specification).is_file()
    if specification.endswith(".json") and not is_file:
        raise UserError(f"tokenizer {specification}: there is no such file")
    load = tokenizers.Tokenizer.from_file if is_file else tokenizers.Tokenizer.from_pretrained
    try:
        backend = load(specification)
    except Exception as error:  # the library raises bare Exceptions of its own
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(
            f"tokenizer {specification!r} is not bpe:N, bytes, a tokenizer.json or a name on the"
            f" hub: {reason}"
        ) from error
    return Tokenizer(backend, bos=bos)


def _first_characters(texts: Iterable[str], limit: int) -> Iterator[str]:
    """The texts until they hold `limit` characters together, the one that crosses it included."""
    taken = 0

    def within_limit(text: str) -> bool:
        nonlocal taken
        before, taken = taken, taken + len(text)
        return before < limit

    return takewhile(within_limit, texts)
