"""Checkpoints that are whole or absent: written beside, read back, renamed."""

import contextlib
import os
from pathlib import Path
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint
from typing_extensions import override

from looped.callbacks.horizon import Horizon
from looped.callbacks.lookup import callback_of
from looped.errors import UserError
from looped.record import CHECKPOINT_DIR, LAST_CHECKPOINT, RecordError, read_checkpoint


class Checkpoints(Checkpoint):
    """Writes checkpoints/step=N.ckpt in the run directory; last.ckpt links to the newest.

    Lightning runs this callback after all others, so that a checkpoint of step N holds every
    counter at step N. The final one is written after the final validation, never before: a run
    that is killed in between resumes from an earlier step and measures again.

    Args:
        every_n_steps: optimizer steps between two checkpoints.
        keep: how many of the newest to keep.
    """

    def __init__(self, every_n_steps: int = 1000, keep: int = 1) -> None:
        for name, value in (("every_n_steps", every_n_steps), ("keep", keep)):
            if value < 1:
                raise UserError(f"checkpoints.{name} {value} is below 1: choose 1 or more")
        self.every_n_steps = every_n_steps
        self.keep = keep
        self._saved_step = 0

    @override
    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._saved_step = trainer.global_step

    @override
    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        step = trainer.global_step
        due = step % self.every_n_steps == 0 and step > self._saved_step
        if due and not callback_of(trainer, Horizon).reached(trainer):
            self.save(trainer)

    @override
    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.save(trainer)

    def save(self, trainer: Trainer) -> None:
        """Write a checkpoint now; collective, every rank calls it, rank zero alone renames.

        Raises:
            UserError: it cannot be written; the previous checkpoint is then intact.
        """
        directory = Path(trainer.default_root_dir) / CHECKPOINT_DIR
        target = directory / f"step={trainer.global_step:08d}.ckpt"
        unfinished = directory / f".{target.name}"
        try:
            trainer.save_checkpoint(unfinished, weights_only=False)
            if trainer.is_global_zero:
                read_checkpoint(unfinished)  # what lies on disk is what was meant
                os.replace(unfinished, target)
                _link(directory / LAST_CHECKPOINT, target.name)
                for old in sorted(directory.glob("step=*.ckpt"))[: -self.keep]:
                    old.unlink()
        except (OSError, RuntimeError, RecordError) as error:  # torch reports a full disk so
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise UserError(
                f"checkpoint {target} cannot be written: {' '.join(str(error).split())}; the "
                "earlier one is intact: make room and resume with --ckpt_path last"
            ) from error
        trainer.strategy.barrier("checkpoint")
        self._saved_step = trainer.global_step


def _link(link: Path, name: str) -> None:
    """Point `link` to a file beside it, replacing an older link in one step."""
    new = link.with_name(f".{link.name}")
    new.unlink(missing_ok=True)
    new.symlink_to(name)
    os.replace(new, link)
