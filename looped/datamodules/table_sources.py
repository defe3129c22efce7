"""Sources made of tables: one document per row, in a named column."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from looped.datamodules.input_files import InputFile, find_files, inventory, reading
from looped.datamodules.sources import Document, SourceRequest
from looped.errors import UserError

DEFAULT_COLUMN = "text"
_ROWS_AT_ONCE = 256


class JsonLines:
    """One JSON object per line, one document per object.

    Args:
        files: the files, in the order in which they are read.
        column: key of the text.
    """

    name = "jsonl"

    def __init__(self, files: Sequence[InputFile], *, column: str) -> None:
        self.undecodable = 0
        self._files = list(files)
        self._column = column

    def documents(self) -> Iterator[Document]:
        """Every object; lines that are not JSON in UTF-8 are skipped and counted.

        Raises:
            UserError: no line is JSON, an object lacks the column or has no text in it, or a file
                cannot be read.
        """
        self.undecodable = 0
        decoded = 0
        for file in self._files:
            for number, line in enumerate(_lines(file), start=1):
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError):  # the latter for thousands of brackets
                    self.undecodable += 1
                else:
                    decoded += 1
                    text = _cell(row, self._column, f"{file.path}, line {number}")
                    yield Document(text, file.held_out)
        if decoded == 0:
            raise UserError(f"no line of the {len(self._files)} files is JSON")

    def size_bytes(self) -> int | None:
        """The sum of the file sizes."""
        return sum(file.size_bytes() for file in self._files)

    def inventory(self) -> dict[str, Any]:
        """Number, size and digest of the files."""
        return inventory(self._files)


class ParquetTables:
    """One document per row of Parquet files.

    Args:
        files: the files, in the order in which they are read.
        column: name of the column of the text.
    """

    name = "parquet"
    undecodable = 0

    def __init__(self, files: Sequence[InputFile], *, column: str) -> None:
        self._files = list(files)
        self._column = column

    def documents(self) -> Iterator[Document]:
        """Every row, a few hundred in memory at a time.

        Raises:
            UserError: a file is not Parquet, lacks the column, or has something else than text
                in it.
        """
        for file in self._files:
            with reading(file) as stream:
                for text in read_column(stream, self._column, file.path):
                    yield Document(text_of(text, self._column, file.path), file.held_out)

    def size_bytes(self) -> int | None:
        """Unknown: the files are compressed."""
        return None

    def inventory(self) -> dict[str, Any]:
        """Number, size and digest of the files."""
        return inventory(self._files)


def jsonl_source(request: SourceRequest) -> JsonLines:
    """The source that the request describes."""
    files = find_files(request.paths, request.val_paths)
    return JsonLines(files, column=request.column or DEFAULT_COLUMN)


def parquet_source(request: SourceRequest) -> ParquetTables:
    """The source that the request describes."""
    files = find_files(request.paths, request.val_paths)
    return ParquetTables(files, column=request.column or DEFAULT_COLUMN)


def read_column(stream: Any, column: str, where: str) -> Iterator[Any]:
    """The cells of one column of a Parquet file, as Python values.

    Args:
        stream: the open file.
        column: its name.
        where: the file's name, for messages.

    Raises:
        UserError: pyarrow is not installed, the file is not Parquet, or it has no such column.
    """
    for batch in read_batches(stream, column, where):
        yield from batch.to_pylist()


def read_batches(stream: Any, column: str, where: str) -> Iterator[Any]:
    """The same column as pyarrow arrays of a few hundred rows.

    Raises:
        UserError: as `read_column`.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise UserError("Parquet needs pyarrow: pip install 'looped[hub]'") from error
    try:
        table = parquet.ParquetFile(stream)
        names = table.schema_arrow.names
    except (pyarrow.ArrowException, OSError) as error:
        raise UserError(f"{where} is not a Parquet file: {_first_line(error)}") from error
    if column not in names:
        raise UserError(_no_column(column, names, where))
    try:
        for batch in table.iter_batches(batch_size=_ROWS_AT_ONCE, columns=[column]):
            yield batch.column(0)
    except (pyarrow.ArrowException, OSError) as error:
        raise UserError(f"cannot read {where}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _lines(file: InputFile) -> Iterator[bytes]:
    with reading(file) as stream:
        yield from (line for line in stream if not line.isspace())


def _cell(row: Any, column: str, where: str) -> str:
    if not isinstance(row, dict) or column not in row:
        raise UserError(_no_column(column, row if isinstance(row, dict) else (), where))
    return text_of(row[column], column, where)


def text_of(cell: Any, column: str, where: str) -> str:
    """The text in a cell; null is an empty document.

    Args:
        cell: what the row holds.
        column: where in the row, for messages.
        where: which row, for messages.

    Raises:
        UserError: it is something else than text.
    """
    if cell is None:
        return ""  # counted as an empty document
    if not isinstance(cell, str):
        raise UserError(f"column {column!r} holds {type(cell).__name__}, not text ({where})")
    return cell


def _no_column(column: str, names: Any, where: str) -> str:
    there = ", ".join(names) or "no columns at all"
    return f"no column {column!r} in {where}: it has {there}; name the text's with --column"
