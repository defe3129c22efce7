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

from looped.datamodules.input_files import InputFile, find_files, inventory, reading
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
from looped.datamodules.tokenizer import MAX_VOCAB_SIZE
from looped.errors import UserError

_COLUMN = "tokens"


@dataclass(frozen=True)
class _Meta:
    """What a meta file says; the same for both splits."""

    row_capacity: int
    vocab_size: int
    bos_token_id: int

    def check(self, where: str) -> None:
        """Refuse numbers of which no rows can be.

        Raises:
            UserError: the message names the number and the file, `where`.
        """
        if self.row_capacity < 2:
            raise UserError(
                f"{where}: row_capacity {self.row_capacity}: a row holds an input and a target, so"
                " at least 2 tokens"
            )
        if not 1 <= self.vocab_size <= MAX_VOCAB_SIZE:
            raise UserError(
                f"{where}: vocab_size {self.vocab_size} is not between 1 and {MAX_VOCAB_SIZE}"
            )
        if not 0 <= self.bos_token_id < self.vocab_size:
            raise UserError(
                f"{where}: bos_token_id {self.bos_token_id} is not in the vocabulary of"
                f" {self.vocab_size}"
            )


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
        with reading(file) as stream:
            try:
                content = json.load(stream)
            except (ValueError, RecursionError) as error:
                raise UserError(f"{file.path} is not a meta file: {error}") from error
        if not isinstance(content, dict):
            raise UserError(f"{file.path} is not a meta file: it holds no JSON object")
        for name in _Meta.__annotations__:
            if name not in content:
                raise UserError(f"{file.path} lacks {name!r}")
            if type(content[name]) is not int:
                raise UserError(f"{file.path}: {name} {content[name]!r} is not a whole number")
        meta = _Meta(**{name: content[name] for name in _Meta.__annotations__})
        meta.check(file.path)
        return meta

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
    with reading(file) as stream:
        for cells in read_batches(stream, _COLUMN, file.path):
            if len(cells):
                yield _block(cells, meta, file.path)


def _block(cells: Any, meta: _Meta, where: str) -> npt.NDArray[np.uint32]:
    """The rows in a pyarrow array of lists, once it is sure that they are rows of token ids."""
    from pyarrow import compute, types

    kind = cells.type
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    if not is_list or not types.is_integer(kind.value_type):
        raise UserError(
            f"column {_COLUMN!r} of {where} holds {kind}: each row must be a list of whole numbers"
        )
    if cells.null_count:
        raise UserError(f"{where} holds a row that is null")
    if compute.list_value_length(cells).unique().to_pylist() != [meta.row_capacity]:
        raise UserError(
            f"{where} holds a row that is not of {meta.row_capacity} tokens, which its meta file"
            " promises"
        )
    flat = cells.flatten()
    if flat.null_count:
        raise UserError(f"{where} holds a token that is null")
    tokens = flat.to_numpy(zero_copy_only=False)
    wrong = tokens[(tokens < 0) | (tokens >= meta.vocab_size)]
    if len(wrong):
        raise UserError(
            f"{where} holds token {wrong[0]}, beyond the vocabulary of {meta.vocab_size} that its"
            " meta file promises"
        )
    return np.asarray(tokens.reshape(-1, meta.row_capacity), dtype=np.uint32)
