"""Ends a run whose loss is lost: not finite, or far above its start for long."""

import math
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_warn
from torch import Tensor
from typing_extensions import override

from looped.errors import UserError


class Divergence(Callback):
    """Stops a run at a NaN or infinite training loss, or at one above twice its start for long.

    The verdict is kept on the device and read now and then, so that no step waits for it; the step
    it names is nevertheless exact.

    Args:
        patience: how many steps in a row the loss may be above twice the first step's.
        check_every_n_steps: steps between two looks at the verdict.

    Attributes:
        step: the optimizer step at which the run was lost; null while it is not.
    """

    def __init__(self, patience: int = 100, check_every_n_steps: int = 50) -> None:
        for name, value in (
            ("patience", patience),
            ("check_every_n_steps", check_every_n_steps),
        ):
            if value < 1:
                raise UserError(f"divergence.{name} {value} is below 1: choose 1 or more")
        self.patience = patience
        self.check_every_n_steps = check_every_n_steps
        self.step: int | None = None
        self._first_loss = math.nan
        self._above = 0
        self._state: Tensor | None = None  # first loss, steps above, step of the verdict or -1

    @override
    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._state = torch.tensor(
            [self._first_loss, float(self._above), -1.0],
            dtype=torch.float64,
            device=pl_module.device,
        )

    @override
    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        assert self._state is not None
        loss = (outputs["loss"] if isinstance(outputs, dict) else outputs).detach().double()
        # Lightning divides the loss it returns by the accumulated batches
        loss = loss * trainer.accumulate_grad_batches
        first, above, verdict = self._state.unbind()
        first = torch.where(first.isnan(), loss, first)
        above = torch.where(loss > 2 * first, above + 1, torch.zeros_like(above))
        lost = ~loss.isfinite() | (above >= self.patience * trainer.accumulate_grad_batches)
        verdict = torch.where((verdict < 0) & lost, float(trainer.global_step), verdict)
        self._state = torch.stack((first, above, verdict))
        if trainer.global_step % self.check_every_n_steps == 0:
            self._look(trainer)

    @override
    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._state is not None and trainer.state.fn == "fit":
            self._look(trainer)

    def _look(self, trainer: Trainer) -> None:
        """Collective: a run is lost when it is on any rank."""
        assert self._state is not None
        first, above, verdict = self._state.tolist()
        self._first_loss, self._above = first, int(above)
        if trainer.strategy.reduce_boolean_decision(verdict >= 0, all=False) and self.step is None:
            self.step = int(verdict) if verdict >= 0 else trainer.global_step
            rank_zero_warn(
                f"the training loss diverged at step {self.step}: the run ends here "
                "(a lower learning rate is the usual remedy)"
            )
            trainer.should_stop = True

    @override
    def state_dict(self) -> dict[str, Any]:
        if self._state is not None:
            self._first_loss, above, _ = self._state.tolist()
            self._above = int(above)
        return {"first_loss": self._first_loss, "above": self._above, "step": self.step}

    @override
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._first_loss = state_dict["first_loss"]
        self._above = state_dict["above"]
        self.step = state_dict["step"]
