"""Writes the record of section 5 of DESIGN.md: into every checkpoint and into run.json."""

import importlib.metadata
import os
import platform
import time
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_info
from typing_extensions import override

from looped.callbacks.compute import Compute
from looped.callbacks.divergence import Divergence
from looped.callbacks.horizon import Horizon
from looped.callbacks.lookup import callback_of, of_data
from looped.callbacks.validation_loss import ValidationLoss
from looped.errors import UserError
from looped.measured_model import measured_model
from looped.optimizers.recipe import group_table
from looped.record import CHECKPOINT_KEY, Record, Status
from looped.source_version import source_version

LIBRARIES = ("torch", "lightning", "litdata", "torchmetrics")


class RunRecord(Callback):
    """Keeps the run directory's record up to date.

    Args:
        dir: the run directory; created when training starts.
        recipe: the name under which runs are fitted together.
        name: name of the run, unique within its sweep; null = the last part of `dir`.
        refresh_s: seconds between two records while training, for those who watch.
    """

    def __init__(
        self,
        dir: str,
        recipe: str = "baseline",
        name: str | None = None,
        refresh_s: float = 2.0,
    ) -> None:
        if not dir:
            raise UserError("run.dir is empty: name the directory of the run")
        if not recipe:
            raise UserError("run.recipe is empty: give the recipe a name, such as baseline")
        self.refresh_s = refresh_s
        self._written_s = 0.0
        self.dir = dir
        self.recipe = recipe
        self.name = Path(dir).resolve().name if name is None else name
        self.status: Status = "running"
        self._started = ""
        self._groups: list[dict[str, Any]] = []

    @override
    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.status = "running"
        self._started = self._started or datetime.now(UTC).isoformat(timespec="seconds")
        self._groups = group_table(trainer.optimizers[0])
        for row in self._groups:
            rank_zero_info(
                f"{row['group']:<9} {row['rule']:<6} {row['parameters']:>13,} parameters, "
                f"learning rate {row['lr']:.3g}"
            )
        self._write(trainer, pl_module)

    @override
    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        if time.monotonic() - self._written_s >= self.refresh_s:
            self._write(trainer, pl_module)

    @override
    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.state.fn == "fit" and not trainer.sanity_checking:
            self._write(trainer, pl_module)

    @override
    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.status = self._final_status(trainer)
        self._write(trainer, pl_module)

    @override
    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        # an error before the first step, or in an evaluation, leaves nothing behind
        if self._started and trainer.state.fn == "fit":
            self.status = "stopped"
            self._write(trainer, pl_module)

    @override
    def on_save_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        checkpoint[CHECKPOINT_KEY] = self.record(trainer, pl_module).as_json()

    def _final_status(self, trainer: Trainer) -> Status:
        if callback_of(trainer, Divergence).step is not None:
            return "diverged"
        entries = callback_of(trainer, ValidationLoss).entries
        measured = bool(entries) and entries[-1].step == trainer.global_step
        if not (measured and callback_of(trainer, Horizon).reached(trainer)):
            return "stopped"
        return "complete" if entries[-1].loss is not None else "diverged"

    def _write(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.is_global_zero:
            directory = Path(self.dir)
            directory.mkdir(parents=True, exist_ok=True)
            self.record(trainer, pl_module).write(directory)
            self._written_s = time.monotonic()

    def record(self, trainer: Trainer, pl_module: LightningModule) -> Record:
        """The record as of now."""
        model = measured_model(pl_module)
        compute = callback_of(trainer, Compute)
        plan = callback_of(trainer, Horizon).plan
        assert plan is not None
        seed = os.environ.get("PL_GLOBAL_SEED")
        describe = of_data(trainer, "describe")
        epoch_tokens = of_data(trainer, "train_rows", 0) * model.seq_len
        return Record(
            run=self.name,
            recipe=self.recipe,
            status=self.status,
            seed=None if seed is None else int(seed),
            versions=_versions(),
            started=self._started,
            wall_s=round(compute.wall_s, 3),
            model=model.describe() | {"recurrences": model.recurrences},
            params=model.parameter_groups().as_record(),
            flops={
                "convention": compute.convention,
                "per_token": compute.flops_per_token,
                "train": compute.train_flops,
                "budget": plan.budget_flops,
                "measured_per_token": compute.measured_flops_per_token,
                "optimizer": compute.optimizer_flops,
            },
            progress={
                "step": trainer.global_step,
                "tokens": compute.tokens,
                "epochs": compute.tokens / epoch_tokens if epoch_tokens else None,
                "planned_steps": plan.steps,
                "planned_tokens": plan.tokens,
                "diverged_step": callback_of(trainer, Divergence).step,
            },
            validation=list(callback_of(trainer, ValidationLoss).entries),
            data=None if describe is None else describe(),
            optimizer=self._groups,
        )

    @override
    def state_dict(self) -> dict[str, Any]:
        return {"started": self._started}

    @override
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._started = state_dict["started"]


@cache
def _versions() -> dict[str, str]:
    known = {"looped": source_version(), "python": platform.python_version()}
    return known | {name: importlib.metadata.version(name) for name in LIBRARIES}
