"""A Trainer that takes one training step whenever it is asked to, and waits in between."""

import logging
import tempfile
import threading
import warnings
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningDataModule, Trainer, seed_everything
from torch.utils.data import DataLoader, IterableDataset

from looped.callbacks.checkpoints import Checkpoints
from looped.callbacks.compute import Compute
from looped.callbacks.divergence import Divergence
from looped.callbacks.horizon import Horizon
from looped.callbacks.run_record import RunRecord
from looped.callbacks.validation_loss import ValidationLoss
from looped.modules.looped_lm import LoopedLM


class SameBatch(IterableDataset):
    """One batch of random tokens, for ever."""

    def __init__(self, inputs: torch.Tensor, targets: torch.Tensor) -> None:
        self.batch = inputs, targets

    def __iter__(self) -> Any:
        while True:
            yield self.batch


class MadeUpTokens(LightningDataModule):
    """Random tokens without any loading."""

    def __init__(self, vocab_size: int, *, batch_size: int, seq_len: int) -> None:
        super().__init__()
        self.batch_size = batch_size
        rows = torch.randint(vocab_size, (batch_size, seq_len + 1))
        self.batch = rows[:, :-1].contiguous(), rows[:, 1:].contiguous()

    def train_dataloader(self) -> DataLoader:
        """The same batch for ever."""
        return DataLoader(SameBatch(*self.batch), batch_size=None)


class Turns(Callback):
    """Has the trainer wait for its turn after every step."""

    def __init__(self) -> None:
        self.asked, self.done = threading.Semaphore(0), threading.Semaphore(0)
        self.ends = False

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """Tell that a step is done, and wait until another is wanted."""
        self.done.release()
        self.asked.acquire()
        trainer.should_stop = self.ends


class TrainerSteps:
    """A `LoopedLM` under Lightning's Trainer as `looped fit` sets it up; a context manager.

    Args:
        model: its arguments.
        batch_size: rows per step.
        measuring: with the callbacks of `looped fit`.
        trainer: further arguments of the Trainer.
    """

    def __init__(
        self, model: dict[str, Any], *, batch_size: int, measuring: bool = True, **trainer: Any
    ) -> None:
        warnings.filterwarnings("ignore", module="lightning")
        logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
        seed_everything(0, verbose=False)
        self._directory = tempfile.TemporaryDirectory()
        self._turns = Turns()
        self.model = LoopedLM(**model)
        self.data = MadeUpTokens(
            model["vocab_size"], batch_size=batch_size, seq_len=model["seq_len"]
        )
        run = Path(self._directory.name) / "run"
        callbacks = [Compute(), ValidationLoss(), Horizon(steps=10**6)]
        callbacks += [RunRecord(str(run)), Divergence(), Checkpoints()] if measuring else []
        self.trainer = Trainer(
            **{
                "accelerator": "cpu",
                "max_epochs": -1,
                "default_root_dir": run,
                "num_sanity_val_steps": 0,
                "enable_model_summary": False,
                "enable_progress_bar": False,
                "logger": False,
                "callbacks": [*callbacks, self._turns],
            }
            | trainer
        )
        self._thread = threading.Thread(
            target=self.trainer.fit, args=(self.model, self.data), daemon=True
        )

    def __enter__(self) -> "TrainerSteps":
        self._thread.start()
        self._turns.done.acquire()
        return self

    def step(self) -> None:
        """One training step: its batch, forward, backward, optimizer and callbacks."""
        self._turns.asked.release()
        self._turns.done.acquire()

    def __exit__(self, *_: object) -> None:
        self._turns.ends = True
        self._turns.asked.release()
        self._thread.join()
        self._directory.cleanup()
