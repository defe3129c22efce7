"""Rows that somebody else has packed, taken over one for one: the paper's published layout.

    train-*.parquet, val-*.parquet     a column `tokens`, in each row T + 1 token ids
    meta_train.json, meta_val.json     row_capacity (T + 1), vocab_size, bos_token_id

The order is that of the file names and of the rows in them.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from looped.datamodules.input_files import InputFile, find_files, inventory
from looped.datamodules.make_tokenizer import load_tokenizer
from looped.datamodules.prepared_data import (
    SPLITS,
    TOKENIZER_FILE,
    PreparedData,
    Split,
    sha256_of,
)
from looped.datamodules.row_store import RowWriter, token_type
from looped.datamodules.table_sources import read_batches
from looped.errors import UserError

_COLUMN = "tokens"


@dataclass(frozen=True)
class _Meta:
    """What a meta file says; the same for both splits."""

    row_capacity: int
    vocab_size: int
    bos_token_id: int


@dataclass(frozen=True, kw_only=True)
class PackedRows:
    """How packed rows become those of a prepared directory.

    Attributes:
        directory: path or URL of the files.
        seq_len: T that is expected; null takes what the files say.
        tokenizer: specification of the tokenizer that made the ids; null leaves it unknown, and
            then the bytes of a token are, too.
    """

    directory: str
    seq_len: int | None
    tokenizer: str | None

    def inventory(self) -> dict[str, Any]:
        """Number, size and digest of the files, those of the metadata included."""
        files = [file for split in SPLITS for file in self._files(split)]
        return inventory(files + [self._meta_file(split) for split in SPLITS])

    def write(self, directory: Path, *, settings: dict[str, Any], progress: bool) -> PreparedData:
        """Fill `directory`; data.json comes last.

        Args:
            directory: an empty directory.
            settings: what was asked for, to be stored.
            progress: not used: copying rows takes seconds.

        Raises:
            UserError: a file is missing or is not of this layout.
        """
        meta = self._meta()
        sizes, stored_tokenizer = self._token_bytes(meta)
        if stored_tokenizer is not None:
            (directory / TOKENIZER_FILE).write_text(stored_tokenizer, encoding="utf-8")
        splits = {name: self._copy(name, directory / name, meta, sizes) for name in SPLITS}
        data = PreparedData(
            settings=settings,
            source="packed-parquet",
            tokenizer=self.tokenizer,
            tokenizer_sha256=stored_tokenizer and sha256_of(stored_tokenizer.encode("utf-8")),
            vocab_size=meta.vocab_size,
            bos=meta.bos_token_id,
            seq_len=meta.row_capacity - 1,
            dtype=np.dtype(token_type(meta.vocab_size)).name,
            skipped={},
            **splits,
        )
        data.write(directory)
        return data

    def _files(self, split: str) -> list[InputFile]:
        return find_files([f"{self.directory}/{split}-*.parquet"])

    def _meta_file(self, split: str) -> InputFile:
        (file,) = find_files([f"{self.directory}/meta_{split}.json"])
        return file

    def _meta(self) -> _Meta:
        train, val = (self._read_meta(split) for split in SPLITS)
        if train != val:
            raise UserError(f"meta_train.json and meta_val.json in {self.directory} disagree")
        if self.seq_len not in (None, train.row_capacity - 1):
            raise UserError(
                f"the rows in {self.directory} hold {train.row_capacity} tokens: use --seq_len"
                f" {train.row_capacity - 1}, not {self.seq_len}"
            )
        return train

    def _read_meta(self, split: str) -> _Meta:
        file = self._meta_file(split)
        with file.open() as stream:
            try:
                content = json.load(stream)
                return _Meta(**{name: int(content[name]) for name in _Meta.__annotations__})
            except (ValueError, TypeError) as error:
                raise UserError(f"{file.path} is not a meta file: {error}") from error
            except KeyError as error:
                raise UserError(f"{file.path} lacks {error}") from error

    def _token_bytes(self, meta: _Meta) -> tuple[npt.NDArray[np.int64], str | None]:
        """The bytes of each token and the tokenizer itself; zeros and null when it is unknown."""
        if self.tokenizer is None:
            return np.zeros(meta.vocab_size, dtype=np.int64), None
        tokenizer = load_tokenizer(self.tokenizer, bos=meta.bos_token_id)
        if tokenizer.vocab_size != meta.vocab_size:
            raise UserError(
                f"tokenizer {self.tokenizer} has {tokenizer.vocab_size} tokens, the rows in"
                f" {self.directory} are of {meta.vocab_size}: name the one that made them"
            )
        return tokenizer.token_bytes(), tokenizer.to_json()

    def _copy(self, split: str, target: Path, meta: _Meta, sizes: npt.NDArray[np.int64]) -> Split:
        writer = RowWriter(target, row_length=meta.row_capacity, dtype=token_type(meta.vocab_size))
        documents = text_bytes = tokens = 0
        for file in self._files(split):
            for rows in _read_rows(file, meta):
                writer.write(rows)
                documents += int(np.count_nonzero(rows == meta.bos_token_id))
                text_bytes += int(sizes[rows].sum())
                tokens += rows.size
        if tokens == 0:
            raise UserError(f"the {split} files in {self.directory} hold no row")
        stored = writer.close()
        return Split(
            documents=documents,
            bytes=text_bytes,
            tokens=tokens,
            cropped=0,
            rows=stored.rows,
            rows_per_chunk=stored.rows_per_chunk,
            sha256=stored.sha256,
        )


def _read_rows(file: InputFile, meta: _Meta) -> Iterator[npt.NDArray[np.uint32]]:
    """Blocks of rows, shape (n, row_capacity)."""
    with file.open() as stream:
        for cells in read_batches(stream, _COLUMN, file.path):
            lengths = {None if row is None else len(row) for row in cells}
            if lengths != {meta.row_capacity}:
                raise UserError(
                    f"{file.path} holds a row that is not of {meta.row_capacity} tokens, which"
                    " its meta file promises"
                )
            tokens = cells.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
            if tokens.min() < 0 or tokens.max() >= meta.vocab_size:
                raise UserError(
                    f"{file.path} holds token {tokens.max()}, beyond the vocabulary of"
                    f" {meta.vocab_size} that its meta file promises"
                )
            yield tokens.reshape(-1, meta.row_capacity).astype(np.uint32)
