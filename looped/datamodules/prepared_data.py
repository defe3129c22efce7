"""A prepared directory: what it holds, how it was made, and whether it is still what was written.

    DIR/data.json        this page: settings, counts, fingerprint; written last
    DIR/tokenizer.json   the tokenizer, in the format of `tokenizers`
    DIR/train/, DIR/val/ rows of T + 1 tokens (row_store.py)

The fingerprint is a hash over the tokens of both splits in order, their stored type, the tokenizer
and T: two directories with the same fingerprint train the same run.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from looped.atomic_write import write_atomically
from looped.datamodules.directory import Directory
from looped.datamodules.row_store import RowStoreError, count_rows, hash_rows
from looped.errors import UserError

SCHEMA = 1
DATA_FILE = "data.json"
TOKENIZER_FILE = "tokenizer.json"
SPLITS = ("train", "val")
# Reading this much costs about a second; larger data is checked by size when it is opened, and
# read in full by `looped prepare --inspect`.
FULL_CHECK_BYTES = 2**30

EXAMPLE = (
    "looped prepare --source stdlib --out {out} --seq_len {seq_len} --tokenizer bpe:{vocab_size}"
)
EXAMPLE_SEQ_LEN = 128
EXAMPLE_VOCAB_SIZE = 1024


@dataclass(frozen=True, kw_only=True)
class Split:
    """One split, by its counts.

    Attributes:
        documents: documents in it.
        bytes: their text in UTF-8.
        tokens: their tokens, one BOS for each included.
        cropped: tokens of these that are in no row.
        rows: rows of T + 1 tokens.
        rows_per_chunk: rows in each chunk file but the last, which may have fewer.
        sha256: of the tokens in order, as stored.
    """

    documents: int
    bytes: int
    tokens: int
    cropped: int
    rows: int
    rows_per_chunk: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class PreparedData:
    """The content of data.json.

    Attributes:
        settings: everything that was asked for; the same settings make the same data.
        source: where the text came from.
        tokenizer: specification of the tokenizer; null when packed rows came without one.
        tokenizer_sha256: of the file tokenizer.json; null when there is none.
        vocab_size: number of tokens, specials included, not padded.
        bos: id of the token that begins a document.
        seq_len: T, targets per row.
        dtype: stored type of a token.
        skipped: documents left out, by reason.
        train: the training rows.
        val: the validation rows.
    """

    settings: dict[str, Any]
    source: str
    tokenizer: str | None
    tokenizer_sha256: str | None
    vocab_size: int
    bos: int
    seq_len: int
    dtype: str
    skipped: dict[str, int]
    train: Split
    val: Split

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that name the tokens, their order, the tokenizer and T."""
        identity = [
            SCHEMA,
            self.tokenizer_sha256,
            self.vocab_size,
            self.bos,
            self.seq_len,
            self.dtype,
            self.train.sha256,
            self.val.sha256,
        ]
        return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]

    @property
    def row_length(self) -> int:
        """Tokens per row: T inputs and, shifted by one, T targets."""
        return self.seq_len + 1

    def write(self, directory: Path) -> None:
        """Write data.json into `directory`, which makes it a prepared one."""
        content = {"schema": SCHEMA, "fingerprint": self.fingerprint} | asdict(self)
        write_atomically(directory / DATA_FILE, json.dumps(content, indent=2) + "\n")

    def verify(self, directory: Directory | Path | str, *, full: bool | None = None) -> None:
        """Check that the files are what was written.

        Args:
            directory: where they are.
            full: read every token; false looks at sizes only, and null reads what is small and on
                this machine.

        Raises:
            UserError: something is missing or changed; the message names it.
        """
        try:
            self._verify(Directory.at(directory), full)
        except RowStoreError as error:
            raise UserError(
                f"the prepared data in {directory} is damaged: {error};"
                " remove the directory and prepare it again"
            ) from error

    def _verify(self, directory: Directory, full: bool | None) -> None:
        self._verify_tokenizer(directory)
        for name, split in self._splits().items():
            rows = count_rows(directory.joined(name), row_length=self.row_length, dtype=self.dtype)
            if rows != split.rows:
                raise RowStoreError(f"{name} holds {rows} rows, {split.rows} were written")
        if full is None:
            full = not directory.is_remote and self.stored_bytes() <= FULL_CHECK_BYTES
        for name, split in self._splits().items() if full else ():
            sha256 = hash_rows(directory.joined(name), row_length=self.row_length, dtype=self.dtype)
            if sha256 != split.sha256:
                raise RowStoreError(f"the tokens of {name} were changed")

    def _verify_tokenizer(self, directory: Directory) -> None:
        if self.tokenizer_sha256 is None:
            return
        try:
            content = directory.read(TOKENIZER_FILE)
        except OSError as error:
            raise RowStoreError(f"{TOKENIZER_FILE} is missing") from error
        if sha256_of(content) != self.tokenizer_sha256:
            raise RowStoreError(f"{TOKENIZER_FILE} was changed")

    def stored_bytes(self) -> int:
        """Bytes of all rows on disk."""
        rows = sum(split.rows for split in self._splits().values())
        return rows * self.row_length * np.dtype(self.dtype).itemsize

    def _splits(self) -> dict[str, Split]:
        return {name: getattr(self, name) for name in SPLITS}


def read_prepared(
    directory: Directory | Path | str, *, seq_len: int | None = None, vocab_size: int | None = None
) -> PreparedData:
    """Read data.json; the rows are not looked at (see `PreparedData.verify`).

    Args:
        directory: made by `prepare`.
        seq_len: T that the model expects; null takes any.
        vocab_size: tokens that the model expects, not padded; null takes any.

    Raises:
        UserError: the directory is missing, empty, half-written, foreign, of another version or
            not what the model expects; the message says which, and what to type.
    """
    directory = Directory.at(directory)
    example = EXAMPLE.format(
        out=directory,
        seq_len=seq_len or EXAMPLE_SEQ_LEN,
        vocab_size=vocab_size or EXAMPLE_VOCAB_SIZE,
    )
    hint = f"make it with: {example}"
    if not directory.exists():
        raise UserError(f"no prepared data in {directory}: it does not exist; {hint}")
    if not directory.is_directory():
        raise UserError(f"no prepared data in {directory}: it is not a directory")
    if directory.size(DATA_FILE) is None:
        state = "empty" if directory.is_empty() else "half-written or something else"
        raise UserError(f"no prepared data in {directory}: it is {state} (no {DATA_FILE}); {hint}")
    try:
        content = json.loads(directory.read(DATA_FILE))
        schema = content["schema"]
        data = _from_json(content) if schema == SCHEMA else None
    except OSError as error:
        raise UserError(f"cannot read {directory}/{DATA_FILE}: {error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{directory}/{DATA_FILE} was not written by looped or is damaged; remove {directory}"
            f" and {hint}"
        ) from error
    if data is None:
        raise UserError(
            f"{directory} was prepared by another version of looped (schema {schema}, this one"
            f" reads {SCHEMA}); remove it and {hint}"
        )
    if content.get("fingerprint") != data.fingerprint:
        raise UserError(
            f"{directory}/{DATA_FILE} was changed after it was written; remove {directory} and"
            f" {hint}"
        )
    _refuse_other_data(data, directory, seq_len=seq_len, vocab_size=vocab_size)
    return data


def _refuse_other_data(
    data: PreparedData, directory: Directory, *, seq_len: int | None, vocab_size: int | None
) -> None:
    for name, expected, found in (
        ("seq_len", seq_len, data.seq_len),
        ("vocab_size", vocab_size, data.vocab_size),
    ):
        if expected is not None and expected != found:
            raise UserError(
                f"the model has {name} {expected}, the data in {directory} has {found}:"
                f" set the model's {name} to {found}, or prepare data for {expected} with"
                f" looped prepare"
            )


def _from_json(content: dict[str, Any]) -> PreparedData:
    known = {field.name: content[field.name] for field in fields(PreparedData)}
    return PreparedData(**known | {name: Split(**content[name]) for name in SPLITS})


def sha256_of(content: bytes) -> str:
    """Hexadecimal SHA-256."""
    return hashlib.sha256(content).hexdigest()
