"""Stops a run at its planned horizon and has the loss measured there."""

import time
from dataclasses import replace
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_info, rank_zero_warn
from typing_extensions import override

from looped.callbacks.compute import Compute
from looped.callbacks.lookup import callback_of, of_data
from looped.errors import UserError
from looped.measured_model import measured_model
from looped.modules.looped_lm import LoopedLM
from looped.quantities import duration
from looped.training_plan import TrainingPlan, plan_training


class Horizon(Callback):
    """How long to train: exactly one of the four.

    The learning rate decays over this horizon, so a run that stops earlier is not `complete`.
    Values may be written like 1e18.

    Args:
        budget_flops: training FLOPs to spend, in the convention of `compute`.
        tokens: training tokens to consume.
        steps: optimizer steps.
        tokens_per_parameter: training tokens per non-embedding parameter (N_once + N_rec).

    Attributes:
        plan: steps, tokens and FLOPs of the run; null before `setup`.
    """

    def __init__(
        self,
        budget_flops: float | None = None,
        tokens: float | None = None,
        steps: float | None = None,
        tokens_per_parameter: float | None = None,
    ) -> None:
        self.budget_flops = budget_flops
        self.tokens = tokens
        self.steps = steps
        self.tokens_per_parameter = tokens_per_parameter
        self.plan: TrainingPlan | None = None

    @override
    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if stage != "fit":
            return
        model = measured_model(pl_module)
        groups = model.parameter_groups()
        self.plan = plan_training(
            flops_per_token=model.flops_per_token(callback_of(trainer, Compute).convention),
            tokens_per_step=_rows_per_step(trainer) * model.seq_len,
            non_embedding=groups.n_once + groups.n_rec,
            budget_flops=self.budget_flops,
            tokens=self.tokens,
            steps=self.steps,
            tokens_per_parameter=self.tokens_per_parameter,
        )
        model.plan = self.plan
        if trainer.max_steps == -1:  # a lower limit of the user's own stays in force
            trainer.fit_loop.epoch_loop.max_steps = self.plan.steps

    @override
    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        assert self.plan is not None
        plan = self.plan
        text = (
            f"Plan: {plan.steps:,} steps of {plan.tokens_per_step:,} tokens = {plan.tokens:,} "
            f"tokens, {plan.train_flops:.3g} FLOPs"
        )
        rows: int | None = of_data(trainer, "train_rows")
        if rows is not None:
            epochs = plan.tokens / (rows * measured_model(pl_module).seq_len)
            text += f", {epochs:.2f} epochs"
            if epochs > 1:
                rank_zero_warn(
                    f"the horizon is {epochs:.2f} epochs over the data: the law assumes fresh "
                    "tokens, so shorten it or prepare more text"
                )
        if isinstance(pl_module, LoopedLM):  # of others it is not known how to time a forward pass
            left_s = (plan.steps - trainer.global_step) * _step_s(trainer, pl_module, plan)
            text += f", about {duration(left_s)}"
        rank_zero_info(text)

    @override
    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        if self.reached(trainer):
            # Lightning validates when it is asked to stop, whatever the interval; only its
            # counting of epochs could still forbid that.
            trainer.check_val_every_n_epoch = None
            trainer.should_stop = True

    def reached(self, trainer: Trainer) -> bool:
        """Whether every planned step has been taken."""
        return self.plan is not None and trainer.global_step >= self.plan.steps


def _rows_per_step(trainer: Trainer) -> int:
    """Training rows per optimizer step over all processes and accumulated batches."""
    batch_size: int | None = of_data(trainer, "batch_size")
    if batch_size is None:
        raise UserError(
            "the horizon needs to know the rows per batch: give the trainer a data module with "
            "an attribute batch_size"
        )
    return batch_size * trainer.accumulate_grad_batches * trainer.world_size


def _step_s(trainer: Trainer, pl_module: LoopedLM, plan: TrainingPlan) -> float:
    """Seconds that an optimizer step will take, from a forward pass timed on one row.

    A row's forward pass costs a third of its training FLOPs, truncated passes aside, which train
    at the price of the forward pass alone.
    """
    architecture = pl_module.architecture
    row = torch.zeros(1, architecture.seq_len, dtype=torch.long, device=pl_module.device)
    with torch.no_grad(), trainer.precision_plugin.forward_context():
        pl_module.network(row)  # the first pass pays for allocations and compilation
        started = time.perf_counter()
        pl_module.network(row).sum().item()  # .item() waits for the device
        forward_s = time.perf_counter() - started
    untruncated = replace(architecture, truncation_depth=None).flops_per_token()
    rows_per_step = plan.tokens_per_step / architecture.seq_len / trainer.world_size
    return forward_s * 3 * rows_per_step * architecture.flops_per_token() / untruncated
