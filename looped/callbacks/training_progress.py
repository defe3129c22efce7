"""How far a run is, on a terminal: loss, tokens per second, FLOPs of the plan, time left."""

import sys
import time
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ProgressBar
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from typing_extensions import override

from looped.callbacks.compute import Compute
from looped.callbacks.horizon import Horizon
from looped.callbacks.lookup import callback_of
from looped.quantities import duration, short
from looped.training_plan import TrainingPlan

REFRESH_S = 0.25
PACE_S = 30.0  # the pace is that of the last half minute


class TrainingProgress(ProgressBar):
    """A bar for training and one for whatever is being evaluated; on a terminal, by one process.

    Elsewhere (a log file, another rank) it does nothing at all.

    Args:
        console: where to draw; null means stderr.
    """

    def __init__(self, console: Console | None = None) -> None:
        super().__init__()
        if console is None:
            console = Console(stderr=True)
            self._on_terminal = sys.stderr.isatty()
        else:
            self._on_terminal = console.is_terminal
        self._console = console
        self._progress: Progress | None = None
        self._training: TaskID | None = None
        self._evaluating: TaskID | None = None
        self._drawn_s = 0.0

    # -- training --------------------------------------------------------------------------------

    @override
    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        plan = callback_of(trainer, Horizon).plan
        assert plan is not None
        self._training = self._bar(
            trainer,
            "training",
            total=plan.tokens,
            completed=callback_of(trainer, Compute).tokens,
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
        now = time.monotonic()
        if self._progress is None or self._training is None or now - self._drawn_s < REFRESH_S:
            return
        self._drawn_s = now
        compute, plan = callback_of(trainer, Compute), callback_of(trainer, Horizon).plan
        assert plan is not None
        # Reading the loss waits for the device: four times a second, not at every step. Lightning
        # divides the loss that it hands out by the accumulated batches.
        loss = float(outputs["loss"]) * trainer.accumulate_grad_batches
        self._progress.update(self._training, completed=compute.tokens)
        (task,) = [task for task in self._progress.tasks if task.id == self._training]
        note = progress_note(
            loss=loss,
            tokens_per_s=task.speed,
            tokens=compute.tokens,
            train_flops=compute.train_flops,
            plan=plan,
        )
        self._progress.update(self._training, note=note)

    @override
    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._end()

    @override
    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        self._end()

    # -- evaluation ------------------------------------------------------------------------------

    @override
    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        batches = (
            trainer.num_sanity_val_batches if trainer.sanity_checking else trainer.num_val_batches
        )
        self._evaluating = self._bar(trainer, "validation", total=_sum(batches))

    @override
    def on_test_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._evaluating = self._bar(trainer, "test", total=_sum(trainer.num_test_batches))

    @override
    def on_predict_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._evaluating = self._bar(trainer, "predict", total=_sum(trainer.num_predict_batches))

    def _evaluated_a_batch(self) -> None:
        if self._progress is not None and self._evaluating is not None:
            self._progress.advance(self._evaluating)

    @override
    def on_validation_batch_end(self, *_: Any, **__: Any) -> None:
        self._evaluated_a_batch()

    @override
    def on_test_batch_end(self, *_: Any, **__: Any) -> None:
        self._evaluated_a_batch()

    @override
    def on_predict_batch_end(self, *_: Any, **__: Any) -> None:
        self._evaluated_a_batch()

    @override
    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._evaluated()

    @override
    def on_test_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._evaluated()

    @override
    def on_predict_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._evaluated()

    def _evaluated(self) -> None:
        if self._progress is not None and self._evaluating is not None:
            self._progress.remove_task(self._evaluating)
        self._evaluating = None
        if self._training is None:
            self._end()

    # -- the display -----------------------------------------------------------------------------

    def _bar(
        self, trainer: Trainer, description: str, *, total: float, completed: float = 0
    ) -> TaskID | None:
        if not (self._on_terminal and trainer.is_global_zero):
            return None
        if self._progress is None:
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=20),
                TextColumn("{task.percentage:>3.0f} %"),
                TextColumn("{task.fields[note]}"),
                console=self._console,
                refresh_per_second=1 / REFRESH_S,
                speed_estimate_period=PACE_S,
                transient=True,
            )
            self._progress.start()
        # int: rich accepts no float for `completed`
        return self._progress.add_task(description, total=total, completed=int(completed), note="")

    def _end(self) -> None:
        if self._progress is not None:
            self._progress.stop()
        self._progress = self._training = self._evaluating = None


def progress_note(
    *,
    loss: float,
    tokens_per_s: float | None,
    tokens: int,
    train_flops: int,
    plan: TrainingPlan,
) -> str:
    """What stands beside the bar of a training run.

    Args:
        loss: of the newest batch, nats per token.
        tokens_per_s: lately; null before there is anything to tell it from.
        tokens: done so far.
        train_flops: spent so far.
        plan: the whole run.
    """
    spent = f"{train_flops:.2e} of {plan.train_flops:.2e} FLOPs"
    if not tokens_per_s:
        return f"loss {loss:.3f}  {spent}"
    left = duration((plan.tokens - tokens) / tokens_per_s)
    return f"loss {loss:.3f}  {short(tokens_per_s)} tokens/s  {spent}  {left} left"


def _sum(batches: float | list[int | float]) -> float:
    """Batches over all data loaders; Lightning keeps one number or one per loader."""
    return float(sum(batches) if isinstance(batches, list) else batches)
