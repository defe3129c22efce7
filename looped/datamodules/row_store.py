"""Rows of tokens on disk, in the chunk format of litdata, read back to be checked.

Each chunk holds one litdata item of a whole number of rows, so that litdata's `TokensLoader` with a
block size of one row finds every row and drops no tail:

    chunk-0-N.bin   uint32 1 (items), uint32 12 (its start), uint32 its end, then the tokens
    index.json      the chunks in order and how to read them

The format is written here, in this process. litdata's `optimize` starts worker processes, switches
the multiprocessing start method of the whole program and may end well with an empty index; its
writer class needs torch and holds a chunk four times, which is half of the memory that a
preparation may use.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from looped.atomic_write import write_atomically
from looped.datamodules.directory import Directory

INDEX_FILE = "index.json"
CHUNK_BYTES = 64 * 2**20
_HEADER_BYTES = 12
_WRITE_BYTES = 2**20
# litdata's numbers for the types of NumPy arrays.
_LITDATA_TYPES = {"uint16": 5, "uint32": 6}


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
        directory: where to; it is made and must not hold a store yet.
        row_length: tokens per row, T + 1.
        dtype: stored type of a token.
        chunk_bytes: greatest size of a chunk's tokens; a larger row gets a chunk of its own.
    """

    def __init__(
        self,
        directory: Path,
        *,
        row_length: int,
        dtype: npt.DTypeLike,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> None:
        directory.mkdir(parents=True)
        self._directory = directory
        self._row_length = row_length
        self._dtype = np.dtype(dtype)
        self._rows_per_chunk = max(1, chunk_bytes // (row_length * self._dtype.itemsize))
        self._chunks: list[dict[str, Any]] = []
        self._rows = 0
        self._hash = hashlib.sha256()
        self._stream: BinaryIO | None = None
        self._rows_in_chunk = 0

    def write(self, rows: npt.NDArray[np.unsignedinteger]) -> None:
        """Append rows, shape (n, row_length)."""
        while len(rows):
            if self._stream is None:
                self._stream = self._open_chunk()
            taken = rows[: self._rows_per_chunk - self._rows_in_chunk]
            tokens = np.ascontiguousarray(taken, dtype=self._dtype).data
            self._hash.update(tokens)
            self._stream.write(tokens)
            self._rows_in_chunk += len(taken)
            if self._rows_in_chunk == self._rows_per_chunk:
                self._close_chunk()
            rows = rows[len(taken) :]

    def close(self) -> StoredRows:
        """End the last chunk and write the index.

        Raises:
            RowStoreError: there was no row at all.
        """
        self._close_chunk()
        if self._rows == 0:
            raise RowStoreError("there is no row to store")
        stored = StoredRows(
            rows=self._rows, rows_per_chunk=self._rows_per_chunk, sha256=self._hash.hexdigest()
        )
        index = {
            "chunks": self._chunks,
            "config": _index_config(self._rows_per_chunk * self._row_length, self._dtype),
            # What litdata's caches of remote chunks go by: better the content than the time.
            "updated_at": stored.sha256,
        }
        write_atomically(self._directory / INDEX_FILE, json.dumps(index))
        return stored

    def _open_chunk(self) -> BinaryIO:
        path = self._directory / f"chunk-0-{len(self._chunks)}.bin"
        stream = path.open("wb", buffering=_WRITE_BYTES)
        stream.write(_header(0))  # the size is known when the chunk is full
        return stream

    def _close_chunk(self) -> None:
        if self._stream is None:
            return
        tokens = self._rows_in_chunk * self._row_length
        size = tokens * self._dtype.itemsize
        self._stream.seek(0)
        self._stream.write(_header(size))
        self._stream.close()
        self._chunks.append(
            {
                "chunk_bytes": _HEADER_BYTES + size,
                "chunk_size": 1,
                "dim": tokens,
                "filename": f"chunk-0-{len(self._chunks)}.bin",
            }
        )
        self._rows += self._rows_in_chunk
        self._stream = None
        self._rows_in_chunk = 0


def _header(size: int) -> bytes:
    """Header of a chunk with one item of `size` bytes: number of items, its start, its end."""
    return np.array([1, _HEADER_BYTES, _HEADER_BYTES + size], dtype="<u4").tobytes()


def _index_config(chunk_tokens: int, dtype: np.dtype[Any]) -> dict[str, Any]:
    """How litdata is to read the chunks: one flat array of tokens each, nothing compressed."""
    return {
        "chunk_bytes": None,
        "chunk_size": chunk_tokens,
        "compression": None,
        "compression_batch_size": None,
        "compression_level": None,
        "data_format": [f"no_header_numpy:{_LITDATA_TYPES[dtype.name]}"],
        "data_spec": '[1, {"type": null, "context": null, "children_spec": []}]',
        "encryption": None,
        "ipc_compression": None,
        "item_loader": "TokensLoader",
        "types": "json",
    }


def count_rows(directory: Directory | Path, *, row_length: int, dtype: npt.DTypeLike) -> int:
    """The rows that the index promises, after checking that every chunk file has its size.

    Raises:
        RowStoreError: a file is missing, has another size, or the index is not of such rows.
    """
    chunks = _chunks(Directory.at(directory), row_length, dtype)
    return sum(size for _, size in chunks) // (row_length * np.dtype(dtype).itemsize)


def hash_rows(directory: Directory | Path, *, row_length: int, dtype: npt.DTypeLike) -> str:
    """SHA-256 of all tokens in order, read from the chunk files.

    Raises:
        RowStoreError: as `count_rows`.
    """
    place = Directory.at(directory)
    digest = hashlib.sha256()
    for name, _ in _chunks(place, row_length, dtype):
        for block in place.blocks(name, skip=_HEADER_BYTES):
            digest.update(block)
    return digest.hexdigest()


def _chunks(directory: Directory, row_length: int, dtype: npt.DTypeLike) -> list[tuple[str, int]]:
    """The names of the chunk files in order, each with its bytes of tokens."""
    split = directory.address.rstrip("/").rsplit("/", 1)[-1]
    try:
        index = json.loads(directory.read(INDEX_FILE))
        chunks = [(chunk["filename"], chunk["dim"]) for chunk in index["chunks"]]
    except OSError as error:
        raise RowStoreError(f"{split}/{INDEX_FILE} is missing") from error
    except (ValueError, KeyError, TypeError) as error:
        raise RowStoreError(f"{split}/{INDEX_FILE} is not a litdata index") from error
    sizes = []
    for name, tokens in chunks:
        if not isinstance(tokens, int) or tokens % row_length:
            raise RowStoreError(f"{split} does not hold rows of {row_length} tokens")
        size = tokens * np.dtype(dtype).itemsize
        found = directory.size(name)
        if found is None:
            raise RowStoreError(f"{split}/{name} is missing")
        if found != _HEADER_BYTES + size:
            raise RowStoreError(f"{split}/{name} is not of the size it was written")
        sizes.append((name, size))
    return sizes
