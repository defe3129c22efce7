"""The LightningModule: loss, optimizer and schedule of a looped language model.

It knows nothing of the trainer around it. The horizon callback hands it its `plan` before the
optimizer is made; the measuring callbacks read `architecture` and what the steps return.
"""

from typing import Any

import torch.nn.functional as F
from lightning.pytorch import LightningModule
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

from looped.architecture import Architecture
from looped.errors import UserError
from looped.modules.looped_transformer import LoopedTransformer
from looped.optimizers.learning_rates import LearningRates, OptimizerName
from looped.optimizers.recipe import make_optimizer
from looped.optimizers.schedule import linear_decay
from looped.training_plan import TrainingPlan

Batch = tuple[Tensor, Tensor]  # inputs and targets, int64 (B, T) each; target -100 is ignored


class LoopedLM(LightningModule):
    """A looped transformer trained to predict the next token.

    The learning rates are quoted at the paper's reference point (width 640, 262,144 tokens per
    step) and transferred to this run by looped/optimizers/learning_rates.py.

    Args:
        optimizer: rule of the block matrices: muonh, or adamw for everything.
        matrix_lr: learning rate of block matrices and injection matrix.
        embed_lr: learning rate of the embedding.
        head_lr: learning rate of the head.
        norm_lr: learning rate of the norm gains.
        stream_lr: learning rate of the stream parameters.
        eval_recurrences: passes through the recurrent block at evaluation; null = recurrences.
        architecture: the arguments of `looped.architecture.Architecture`.

    Attributes:
        architecture: the constructor arguments of the network.
        plan: the planned horizon; null until the horizon callback has set it.

    Raises:
        UserError: an impossible value or combination.
    """

    def __init__(
        self,
        *,
        optimizer: OptimizerName = "muonh",
        matrix_lr: float = 0.014,
        embed_lr: float = 0.3,
        head_lr: float = 0.004,
        norm_lr: float = 0.005,
        stream_lr: float = 0.01,
        eval_recurrences: int | None = None,
        **architecture: Any,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.network = LoopedTransformer(**architecture)
        self.rates = LearningRates(
            optimizer=optimizer,
            matrix_lr=matrix_lr,
            embed_lr=embed_lr,
            head_lr=head_lr,
            norm_lr=norm_lr,
            stream_lr=stream_lr,
        )
        if eval_recurrences is not None and eval_recurrences < 1:
            raise UserError(f"eval_recurrences {eval_recurrences} is below 1: choose 1 or more")
        self.eval_recurrences = eval_recurrences or self.architecture.recurrences
        self.plan: TrainingPlan | None = None

    @property
    def architecture(self) -> Architecture:
        """The constructor arguments of the network."""
        return self.network.architecture

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (B, T, V) at the evaluation's recurrence count; tokens are (B, T)."""
        logits: Tensor = self.network(tokens, recurrences=self.eval_recurrences)
        return logits

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Mean cross-entropy over the targets, nats per token."""
        inputs, targets = batch
        loss = F.cross_entropy(self.network(inputs).flatten(0, 1), targets.flatten())
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch: Batch, batch_idx: int) -> dict[str, Tensor]:
        """Cross-entropy of every target: `nats` (B, T), zero where ignored, and `targets`."""
        inputs, targets = batch
        nats = F.cross_entropy(self(inputs).flatten(0, 1), targets.flatten(), reduction="none")
        return {"nats": nats.view_as(targets), "targets": targets}

    def test_step(self, batch: Batch, batch_idx: int) -> dict[str, Tensor]:
        """As `validation_step`."""
        return self.validation_step(batch, batch_idx)

    def predict_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Nats of every target: (B, T)."""
        return self.validation_step(batch, batch_idx)["nats"]

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """One optimizer, its rates transferred to the plan, and the linear decay over it."""
        if self.plan is None:
            raise UserError(
                "no horizon is known: add looped.callbacks.horizon.Horizon to the trainer's "
                "callbacks (`looped fit` always has it)"
            )
        steps = self.plan.steps
        optimizer = make_optimizer(
            self.network, self.rates.transferred(self.architecture, self.plan)
        )
        schedule = LambdaLR(optimizer, lambda step: linear_decay(step, steps))
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }
