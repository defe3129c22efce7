"""A run of seconds on made-up tokens, with all measuring callbacks."""

from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback, LightningDataModule, Trainer, seed_everything
from torch.utils.data import DataLoader, TensorDataset

from looped.callbacks.checkpoints import Checkpoints
from looped.callbacks.compute import Compute
from looped.callbacks.divergence import Divergence
from looped.callbacks.horizon import Horizon
from looped.callbacks.run_record import RunRecord
from looped.callbacks.validation_loss import ValidationLoss
from looped.modules.looped_lm import LoopedLM

VOCAB, SEQ_LEN = 20, 8
MODEL = {
    "width": 8,
    "num_heads": 2,
    "prelude_layers": 1,
    "recurrent_layers": 1,
    "coda_layers": 1,
    "recurrences": 2,
    "vocab_size": VOCAB,
    "seq_len": SEQ_LEN,
}


class MadeUpTokens(LightningDataModule):
    """40 training rows in order; 7 validation rows, so that the last batch of two is ragged."""

    def __init__(self, batch_size: int = 2) -> None:
        super().__init__()
        self.batch_size = batch_size
        self.train_rows = 40
        generator = torch.Generator().manual_seed(5)
        rows = torch.randint(VOCAB, (47, SEQ_LEN + 1), generator=generator)
        self.train, self.val = rows[:40], rows[40:]
        self.token_bytes = torch.arange(VOCAB)

    def describe(self) -> dict[str, Any]:
        return {"fingerprint": "made up", "vocab_size": VOCAB, "seq_len": SEQ_LEN}

    def _loader(self, rows: torch.Tensor) -> DataLoader:
        return DataLoader(TensorDataset(rows[:, :-1], rows[:, 1:]), batch_size=self.batch_size)

    def train_dataloader(self) -> DataLoader:
        return self._loader(self.train)

    def val_dataloader(self) -> DataLoader:
        return self._loader(self.val)

    def test_dataloader(self) -> DataLoader:
        return self._loader(self.val)


class Run:
    """One training run in a directory: `fit` it, then look at its parts."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def prepare(
        self,
        *,
        steps: float = 6,
        callbacks: list[Callback] | None = None,
        every_n_steps: int = 1000,
        keep: int = 1,
        validate_every: int | None = None,
        batch_size: int = 2,
        model: dict[str, Any] | None = None,
        **trainer: Any,
    ) -> "Run":
        seed_everything(0)
        self.compute = Compute()
        self.validation = ValidationLoss(every_n_steps=validate_every)
        self.horizon = Horizon(steps=steps)
        self.record = RunRecord(str(self.directory))
        self.divergence = Divergence()
        self.checkpoints = Checkpoints(every_n_steps=every_n_steps, keep=keep)
        measuring = [
            self.checkpoints,  # Lightning moves checkpoint callbacks to the end
            self.compute,
            self.validation,
            self.horizon,
            self.record,
            self.divergence,
        ]
        self.model = LoopedLM(**(MODEL | (model or {})))
        self.data = MadeUpTokens(batch_size)
        self.trainer = Trainer(
            **(
                {
                    "accelerator": "cpu",
                    "max_epochs": -1,
                    "default_root_dir": self.directory,
                    "logger": False,
                    "num_sanity_val_steps": 0,
                    "enable_progress_bar": False,
                    "enable_model_summary": False,
                    "callbacks": measuring + (callbacks or []),
                }
                | trainer
            )
        )
        return self

    def fit(self, *, ckpt_path: Path | None = None, **arguments: Any) -> "Run":
        self.prepare(**arguments)
        self.trainer.fit(self.model, self.data, ckpt_path=ckpt_path)
        return self

    @property
    def last(self) -> Path:
        return self.directory / "checkpoints" / "last.ckpt"


@pytest.fixture
def run(tmp_path) -> Run:
    return Run(tmp_path / "run")


class RaiseAt(Callback):
    """Ends the run with an exception after a number of steps."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_train_batch_end(self, trainer, *_: Any) -> None:
        if trainer.global_step == self.step:
            raise RuntimeError("pulled the plug")
