"""Measures the loss on all validation rows and keeps one entry per measurement."""

import math
from dataclasses import asdict
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor
from typing_extensions import override

from looped.callbacks.compute import Compute
from looped.callbacks.lookup import callback_of, of_data
from looped.callbacks.token_loss import TokenLoss
from looped.errors import UserError
from looped.measured_model import measured_model
from looped.record import Validation


class ValidationLoss(Callback):
    """Nats per token, perplexity and bits per byte over the whole validation split.

    Logged as val_loss, val_perplexity and val_bits_per_byte (test_... for the test split). The
    sanity check before training is not a measurement and leaves no entry.

    Args:
        every_n_steps: measure also after every so many optimizer steps; null = as Lightning's
            own settings say, which is at the end of each epoch. The horizon always measures at
            its end.

    Attributes:
        entries: the measurements of this training run, oldest first.
    """

    def __init__(self, every_n_steps: int | None = None) -> None:
        if every_n_steps is not None and every_n_steps < 1:
            raise UserError(f"validation.every_n_steps {every_n_steps} is below 1")
        self.every_n_steps = every_n_steps
        self.entries: list[Validation] = []
        self._metric = TokenLoss()
        self._token_bytes: Tensor | None = None

    @override
    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if stage != "fit":
            return
        if trainer.limit_val_batches != 1.0 and not trainer.fast_dev_run:  # type: ignore[attr-defined]  # a connector sets it
            raise UserError(
                f"trainer.limit_val_batches {trainer.limit_val_batches}: the loss that phi is "
                "fitted to needs all validation rows; leave the option out"
            )
        if self.every_n_steps is not None:
            # Lightning counts batches, a user counts optimizer steps.
            trainer.check_val_every_n_epoch = None
            trainer.val_check_interval = self.every_n_steps * trainer.accumulate_grad_batches

    # -- one measurement: reset, add the batches, compute ----------------------------------------

    def _start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._metric = self._metric.to(pl_module.device)
        self._metric.reset()
        known: Tensor | None = of_data(trainer, "token_bytes")
        self._token_bytes = None if known is None else known.to(pl_module.device)

    def _add(self, outputs: Any) -> None:
        if not (isinstance(outputs, dict) and {"nats", "targets"} <= outputs.keys()):
            raise UserError(
                "the model's validation_step (and test_step) must return a dict of `nats`, the "
                "loss of every target, and `targets`: see docs/own-model.md"
            )
        self._metric.update(outputs["nats"], outputs["targets"], self._token_bytes)

    def _log(self, pl_module: LightningModule, split: str) -> dict[str, float]:
        result = self._metric.compute()
        for name in ("loss", "perplexity", "bits_per_byte"):
            if name == "loss" or not math.isnan(result[name]):
                # already the same on every rank: nothing is left to reduce
                pl_module.log(f"{split}_{name}", result[name], rank_zero_only=True)
        return result

    @override
    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._start(trainer, pl_module)

    @override
    def on_test_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._start(trainer, pl_module)

    @override
    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        self._add(outputs)

    @override
    def on_test_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        self._add(outputs)

    @override
    def on_test_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._log(pl_module, "test")

    @override
    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.sanity_checking:
            return
        result = self._log(pl_module, "val")
        if trainer.state.fn == "fit":
            self.entries.append(self._entry(trainer, pl_module, result))

    def _entry(
        self, trainer: Trainer, pl_module: LightningModule, result: dict[str, float]
    ) -> Validation:
        compute = callback_of(trainer, Compute)
        return Validation(
            step=trainer.global_step,
            tokens=compute.tokens,
            train_flops=compute.train_flops,
            loss=_finite_or_none(result["loss"]),
            bits_per_byte=_finite_or_none(result["bits_per_byte"]),
            tokens_evaluated=int(result["tokens"]),
            recurrences=measured_model(pl_module).recurrences,
        )

    @override
    def state_dict(self) -> dict[str, Any]:
        return {"entries": [asdict(entry) for entry in self.entries]}

    @override
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.entries = [Validation(**entry) for entry in state_dict["entries"]]


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
