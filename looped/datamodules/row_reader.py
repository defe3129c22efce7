"""Rows from a row store, by number, through litdata."""

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

Batch = tuple[torch.Tensor, torch.Tensor]


class RowReader:
    """Reads rows by number from a local or remote row store.

    litdata opens the store in the process that reads it: its readers hold memory maps and threads
    that a forked loader process must not share.

    Args:
        directory: a row store; a path, or an address that litdata knows (`s3://...`).
        row_length: tokens per row, T + 1.
    """

    def __init__(self, directory: str, *, row_length: int) -> None:
        self._directory = directory
        self._row_length = row_length
        self._dataset: Any = None
        self._opened_in: int | None = None

    def read(self, numbers: Iterable[int]) -> Batch:
        """The rows of these numbers as inputs and targets.

        Returns:
            Two views of one int64 tensor (B, T + 1): its first and its last T columns, so neither
            is contiguous.
        """
        dataset = self._open()
        rows: list[npt.NDArray[np.unsignedinteger]] = [dataset[int(number)] for number in numbers]
        tokens = torch.from_numpy(np.stack(rows, dtype=np.int64))
        return tokens[:, :-1], tokens[:, 1:]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_dataset": None, "_opened_in": None}

    def _open(self) -> Any:
        if self._opened_in != os.getpid():
            from litdata import StreamingDataset
            from litdata.streaming.item_loader import TokensLoader

            self._dataset = StreamingDataset(
                self._directory, item_loader=TokensLoader(self._row_length)
            )
            self._opened_in = os.getpid()
        return self._dataset
