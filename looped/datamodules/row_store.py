"""Rows of tokens on disk: litdata chunks, written in this process and read back to be checked.

litdata's own `optimize` starts worker processes, switches the multiprocessing start method of the
whole program and may end well with an empty index. Its writer class does none of that.

Each chunk is one litdata item that holds a whole number of rows, so litdata's `TokensLoader` with
a block size of one row finds every row and drops no tail.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

INDEX_FILE = "index.json"
CHUNK_BYTES = 64 * 2**20
# litdata's header of a chunk with one item: number of items, its start, its end (uint32 each).
_HEADER_BYTES = 12


class RowStoreError(Exception):
    """The files of a row store are missing or are not what was written; the message says why."""


@dataclass(frozen=True)
class StoredRows:
    """What a row store holds.

    Attributes:
        rows: number of rows.
        rows_per_chunk: rows in each chunk but the last, which may have fewer.
        sha256: of all tokens in order, as stored.
    """

    rows: int
    rows_per_chunk: int
    sha256: str


def token_type(vocab_size: int) -> npt.DTypeLike:
    """The narrowest stored type that can hold every id of the vocabulary."""
    return np.uint16 if vocab_size <= 2**16 else np.uint32


class RowWriter:
    """Writes rows in the order given; the index appears only with `close`.

    Args:
        directory: must not hold a store yet.
        row_length: tokens per row, T + 1.
        dtype: stored type of a token.
        chunk_bytes: greatest size of a chunk file; a row larger than that gets its own.
    """

    def __init__(
        self,
        directory: Path,
        *,
        row_length: int,
        dtype: npt.DTypeLike,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> None:
        from litdata.streaming.item_loader import TokensLoader
        from litdata.streaming.writer import BinaryWriter

        self._directory = directory
        self._dtype = np.dtype(dtype)
        self._rows_per_chunk = max(1, chunk_bytes // (row_length * self._dtype.itemsize))
        self._row_length = row_length
        self._writer = BinaryWriter(
            str(directory),
            chunk_size=self._rows_per_chunk * row_length,
            item_loader=TokensLoader(row_length),
        )
        self._waiting: list[npt.NDArray[np.unsignedinteger]] = []
        self._waiting_rows = 0
        self._chunks = 0
        self._rows = 0
        self._hash = hashlib.sha256()

    def write(self, rows: npt.NDArray[np.unsignedinteger]) -> None:
        """Append rows, shape (n, row_length)."""
        while len(rows):
            taken = rows[: self._rows_per_chunk - self._waiting_rows]
            self._waiting.append(taken.astype(self._dtype))
            self._waiting_rows += len(taken)
            if self._waiting_rows == self._rows_per_chunk:
                self._flush()
            rows = rows[len(taken) :]

    def close(self) -> StoredRows:
        """Write what waits and the index.

        Raises:
            RowStoreError: there was no row at all.
        """
        self._flush()
        if self._rows == 0:
            raise RowStoreError("there is no row to store")
        self._writer.done()
        # litdata would wait here for the indices of other workers, as many as WORLD_SIZE says.
        os.replace(self._writer.write_chunks_index(), self._directory / INDEX_FILE)
        return StoredRows(
            rows=self._rows, rows_per_chunk=self._rows_per_chunk, sha256=self._hash.hexdigest()
        )

    def _flush(self) -> None:
        if not self._waiting:
            return
        chunk = np.concatenate(self._waiting).reshape(-1)
        self._hash.update(chunk.data)
        self._writer.add_item(self._chunks, chunk)
        self._rows += self._waiting_rows
        self._chunks += 1
        self._waiting = []
        self._waiting_rows = 0


def count_rows(directory: Path, *, row_length: int, dtype: npt.DTypeLike) -> int:
    """The rows that the index promises, after checking that every chunk file has its size.

    Raises:
        RowStoreError: a file is missing, has another size, or the index is not of such rows.
    """
    return sum(
        size // (row_length * np.dtype(dtype).itemsize)
        for _, size in _chunks(directory, row_length, dtype)
    )


def hash_rows(directory: Path, *, row_length: int, dtype: npt.DTypeLike) -> str:
    """SHA-256 of all tokens in order, read from the chunk files.

    Raises:
        RowStoreError: as `count_rows`.
    """
    digest = hashlib.sha256()
    for path, _ in _chunks(directory, row_length, dtype):
        digest.update(np.memmap(path, mode="r", offset=_HEADER_BYTES).data)
    return digest.hexdigest()


def _chunks(directory: Path, row_length: int, dtype: npt.DTypeLike) -> list[tuple[Path, int]]:
    """The chunk files in order, each with its bytes of tokens."""
    try:
        index = json.loads((directory / INDEX_FILE).read_text(encoding="utf-8"))
        chunks = [(directory / chunk["filename"], chunk["dim"]) for chunk in index["chunks"]]
    except FileNotFoundError as error:
        raise RowStoreError(f"{directory.name}/{INDEX_FILE} is missing") from error
    except (ValueError, KeyError, TypeError) as error:
        raise RowStoreError(f"{directory.name}/{INDEX_FILE} is not a litdata index") from error
    sizes = []
    for path, tokens in chunks:
        if not isinstance(tokens, int) or tokens % row_length:
            raise RowStoreError(f"{directory.name} does not hold rows of {row_length} tokens")
        size = tokens * np.dtype(dtype).itemsize
        if not path.is_file():
            raise RowStoreError(f"{directory.name}/{path.name} is missing")
        if path.stat().st_size != _HEADER_BYTES + size:
            raise RowStoreError(f"{directory.name}/{path.name} is not of the size it was written")
        sizes.append((path, size))
    return sizes
