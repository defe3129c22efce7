"""A look into a prepared directory: is it whole, and what do its rows say."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from looped.datamodules.directory import Directory
from looped.datamodules.prepared_data import SPLITS, TOKENIZER_FILE, PreparedData, read_prepared
from looped.datamodules.tokenizer import Tokenizer


@dataclass(frozen=True)
class RowText:
    """One row, readable.

    Attributes:
        split: where it is from.
        number: its place there.
        text: its tokens decoded, or the ids when the tokenizer is unknown.
    """

    split: str
    number: int
    text: str


def inspect_prepared(
    directory: Directory | Path | str, *, rows_per_split: int
) -> tuple[PreparedData, list[RowText]]:
    """Check every token of a prepared directory and decode its first rows.

    Args:
        directory: made by `prepare`.
        rows_per_split: how many rows of each split to decode.

    Raises:
        UserError: the directory is missing, changed or damaged.
    """
    directory = Directory.at(directory)
    data = read_prepared(directory)
    data.verify(directory, full=True)
    return data, list(_decoded_rows(data, directory, rows_per_split))


def _decoded_rows(data: PreparedData, directory: Directory, count: int) -> Iterator[RowText]:
    from looped.datamodules.row_reader import RowReader

    tokenizer = None
    if data.tokenizer is not None:
        stored = directory.read(TOKENIZER_FILE).decode("utf-8")
        tokenizer = Tokenizer.from_json(stored, bos=data.bos)
    for split, rows in zip(SPLITS, (data.train.rows, data.val.rows), strict=True):
        reader = RowReader(directory.joined(split).address, row_length=data.row_length)
        for number in range(min(count, rows)):
            inputs, targets = reader.read([number])
            tokens = [*inputs[0].tolist(), int(targets[0, -1])]
            text = str(tokens) if tokenizer is None else tokenizer.decode(tokens)
            yield RowText(split, number, text)
