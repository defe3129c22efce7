"""Prepared tokens for the Lightning Trainer."""

from typing import Any

import torch
from lightning import LightningDataModule
from torch.utils.data import DataLoader

from looped.datamodules.batches import PlannedBatches, TrainStream
from looped.datamodules.directory import Directory
from looped.datamodules.prepared_data import TOKENIZER_FILE, PreparedData, read_prepared
from looped.datamodules.row_order import deal_in_order
from looped.datamodules.row_reader import Batch, RowReader
from looped.datamodules.tokenizer import Tokenizer
from looped.errors import UserError


class TokenDataModule(LightningDataModule):
    """Streams the rows of a directory made by `looped prepare`.

    Batches are `(inputs, targets)`, int64 (B, T) each, not contiguous.

    Args:
        data_dir: directory made by `looped prepare`: a path, the URL of a copy in an object store,
            or `local:PATH` on a slow disk; chunks of the latter two are cached by litdata.
        batch_size: rows per batch and process.
        seq_len: T that the model expects, in tokens; null takes what the directory holds, and
            `setup` puts that here.
        vocab_size: number of tokens that the model expects, not padded; null takes what the
            directory holds, and `setup` puts that here.
        num_workers: processes that load batches; 0 loads in the training process.
        seed: of the order of the training rows.

    Attributes:
        token_bytes: UTF-8 bytes of each token, int64 (V,), 0 for specials, all 0 when packed rows
            came without their tokenizer; after `setup`.
        train_rows: rows to train on; after `setup`.
        val_rows: rows to validate on; after `setup`.
    """

    token_bytes: torch.Tensor
    train_rows: int
    val_rows: int

    def __init__(
        self,
        data_dir: str,
        *,
        batch_size: int,
        seq_len: int | None = None,
        vocab_size: int | None = None,
        num_workers: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if batch_size < 1:
            raise UserError(f"batch_size {batch_size}: a batch holds at least 1 row")
        if num_workers < 0:
            raise UserError(f"num_workers {num_workers}: use 0 to load in the training process")
        if not 0 <= seed < 2**32:
            raise UserError(f"seed {seed}: the order of the rows takes a seed from 0 to 2^32 - 1")
        self.save_hyperparameters()
        self.data_dir = data_dir
        self.batch_size = batch_size
        self.seq_len = seq_len
        self.vocab_size = vocab_size
        self.num_workers = num_workers
        self.seed = seed
        self._data: PreparedData | None = None

    def setup(self, stage: str | None = None) -> None:
        """Open the directory and check that it is what the model expects.

        Raises:
            UserError: missing, empty, half-written, changed, of another vocabulary or T, or with
                fewer rows than one batch.
        """
        if self._data is None:
            directory = Directory(self.data_dir)
            data = read_prepared(directory, seq_len=self.seq_len, vocab_size=self.vocab_size)
            data.verify(directory)
            self._take(data, directory)
        self._val_plan()
        if stage in (None, "fit"):
            self._check_train_rows()

    def train_dataloader(self) -> TrainStream:
        """Shuffled batches of `batch_size` rows, equally many on every rank."""
        rank, world_size = self._place()
        return TrainStream(
            self._reader("train"),
            rows=self.train_rows,
            rows_per_chunk=self._prepared.train.rows_per_chunk,
            seed=self.seed,
            fingerprint=self._prepared.fingerprint,
            batch_size=self.batch_size,
            rank=rank,
            world_size=world_size,
            num_workers=self.num_workers,
            pin_memory=torch.cuda.is_available(),
        )

    def val_dataloader(self) -> DataLoader[Batch]:
        """Every validation row once, in order; the last batch may be smaller."""
        return DataLoader(
            PlannedBatches(self._reader("val"), self._val_plan()),
            batch_size=None,
            num_workers=self.num_workers,
            pin_memory=torch.cuda.is_available(),
        )

    def test_dataloader(self) -> DataLoader[Batch]:
        """The validation rows: there is no third split."""
        return self.val_dataloader()

    def predict_dataloader(self) -> DataLoader[Batch]:
        """The validation rows."""
        return self.val_dataloader()

    def describe(self) -> dict[str, Any]:
        """The `data` section of a run's record: plain JSON types; after `setup`."""
        data = self._prepared
        return {
            "fingerprint": data.fingerprint,
            "source": data.source,
            "tokenizer": data.tokenizer,
            "vocab_size": data.vocab_size,
            "seq_len": data.seq_len,
        }

    @property
    def _prepared(self) -> PreparedData:
        if self._data is None:
            raise RuntimeError("TokenDataModule is used before setup()")
        return self._data

    def _take(self, data: PreparedData, directory: Directory) -> None:
        self.token_bytes = torch.zeros(data.vocab_size, dtype=torch.int64)
        if data.tokenizer is not None:
            stored = directory.read(TOKENIZER_FILE).decode("utf-8")
            tokenizer = Tokenizer.from_json(stored, bos=data.bos)
            self.token_bytes = torch.from_numpy(tokenizer.token_bytes())
        self.seq_len = data.seq_len
        self.vocab_size = data.vocab_size
        self.train_rows = data.train.rows
        self.val_rows = data.val.rows
        self._data = data

    def _check_train_rows(self) -> None:
        _, world_size = self._place()
        if self.train_rows < self.batch_size * world_size:
            raise UserError(
                f"{self.data_dir} has {self.train_rows} training rows, fewer than one batch of"
                f" {self.batch_size} for each of {world_size} processes: use a smaller batch_size"
                " or prepare more text"
            )

    def _val_plan(self) -> list[range]:
        rank, world_size = self._place()
        return deal_in_order(
            self.val_rows, batch_size=self.batch_size, rank=rank, world_size=world_size
        )

    def _reader(self, split: str) -> RowReader:
        directory = Directory(self.data_dir).joined(split)
        return RowReader(directory.address, row_length=self._prepared.row_length)

    def _place(self) -> tuple[int, int]:
        """Rank of this process and number of processes."""
        if self.trainer is None:
            return 0, 1
        return self.trainer.global_rank, self.trainer.world_size
