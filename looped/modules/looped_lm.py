"""The LightningModule: loss, optimizer and schedule of a looped language model.

It knows nothing of the trainer around it. The horizon callback hands it its `plan` before the
optimizer is made; the measuring callbacks read what looped/measured_model.py names and what the
steps return.
"""

from typing import Any

from lightning.pytorch import LightningModule
from lightning.pytorch.utilities import rank_zero_warn
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

from looped.architecture import Architecture, Convention, ParameterGroups
from looped.errors import UserError
from looped.modules.looped_transformer import LoopedTransformer
from looped.modules.sharding import shard
from looped.optimizers.learning_rates import LearningRates
from looped.optimizers.recipe import make_optimizer
from looped.optimizers.schedule import ScheduleName, linear_decay, warmup_stable_decay
from looped.training_plan import TrainingPlan

Batch = tuple[Tensor, Tensor]  # inputs and targets, int64 (B, T) each; target -100 is ignored


class LoopedLM(LightningModule):
    """A looped transformer trained to predict the next token.

    The learning rates are quoted at the paper's reference point (width 640, 262,144 tokens per
    step) and transferred to this run by looped/optimizers/learning_rates.py.

    Args:
        optimizer: muonh for the block matrices and adamw for the rest, adamw for everything, or
            the class path of another optimizer, such as torch.optim.SGD.
        optimizer_args: arguments of an optimizer named by its class path.
        schedule: linear decay to a tenth, or wsd: warm-up, stable, decay.
        warmup_fraction: share of the steps that wsd warms up for.
        decay_fraction: share of the steps that wsd decays for.
        matrix_lr: learning rate of block matrices and injection matrix.
        embed_lr: learning rate of the embedding.
        head_lr: learning rate of the head.
        norm_lr: learning rate of the norm gains.
        stream_lr: learning rate of the stream parameters.
        activation_checkpointing: keep of each recurrence its input alone and compute it again in
            the backward pass, which takes less memory and up to a third more time.
        compile_blocks: compile the blocks with torch.compile.
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
        optimizer: str = LearningRates.optimizer,
        optimizer_args: dict[str, Any] | None = None,
        schedule: ScheduleName = "linear",
        warmup_fraction: float = 0.02,
        decay_fraction: float = 0.2,
        matrix_lr: float = LearningRates.matrix_lr,
        embed_lr: float = LearningRates.embed_lr,
        head_lr: float = LearningRates.head_lr,
        norm_lr: float = LearningRates.norm_lr,
        stream_lr: float = LearningRates.stream_lr,
        activation_checkpointing: bool = False,
        compile_blocks: bool = False,
        eval_recurrences: int | None = None,
        **architecture: Any,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.network = LoopedTransformer(
            activation_checkpointing=activation_checkpointing, **architecture
        )
        if compile_blocks:
            self.network.compile_blocks()
        self.rates = LearningRates(
            optimizer=optimizer,
            matrix_lr=matrix_lr,
            embed_lr=embed_lr,
            head_lr=head_lr,
            norm_lr=norm_lr,
            stream_lr=stream_lr,
        )
        if warmup_fraction < 0 or decay_fraction < 0 or warmup_fraction + decay_fraction > 1:
            raise UserError(
                f"warmup_fraction {warmup_fraction} and decay_fraction {decay_fraction}: neither "
                "may be negative, and together they must not exceed 1"
            )
        self.optimizer_args = optimizer_args
        self.schedule = schedule
        self.warmup_fraction = warmup_fraction
        self.decay_fraction = decay_fraction
        if eval_recurrences is not None and eval_recurrences < 1:
            raise UserError(f"eval_recurrences {eval_recurrences} is below 1: choose 1 or more")
        self.eval_recurrences = eval_recurrences or self.architecture.recurrences
        self.plan: TrainingPlan | None = None

    @property
    def architecture(self) -> Architecture:
        """The constructor arguments of the network."""
        return self.network.architecture

    # -- what is measured of it (looped/measured_model.py) ---------------------------------------

    @property
    def recurrences(self) -> int:
        """How often the recurrent block runs in training."""
        return self.architecture.recurrences

    @property
    def seq_len(self) -> int:
        """T, targets per training row."""
        return self.architecture.seq_len

    def parameter_groups(self) -> ParameterGroups:
        """Number of parameters by group."""
        return self.architecture.parameter_groups()

    def flops_per_token(self, convention: Convention = "paper") -> int:
        """Training FLOPs per token."""
        return self.architecture.flops_per_token(convention)

    def describe(self) -> dict[str, Any]:
        """The constructor arguments of the network."""
        return self.architecture.as_record()

    # -- hooks and steps -------------------------------------------------------------------------

    def setup(self, stage: str) -> None:
        """Refuse to train while measuring something else.

        Raises:
            UserError: another recurrence count at evaluation.
        """
        if stage == "fit" and self.eval_recurrences != self.recurrences:
            raise UserError(
                f"model.eval_recurrences {self.eval_recurrences} differs from model.recurrences "
                f"{self.recurrences} in fit: train first, then evaluate other counts with "
                "`looped validate`"
            )

    def configure_model(self) -> None:
        """Shard the network when the strategy brings a device mesh (FSDP2)."""
        if self.device_mesh is not None:
            shard(self.network, self.device_mesh)

    def on_fit_start(self) -> None:
        """Say so when a part of the model cannot learn."""
        if not self.network.trains_prelude:
            rank_zero_warn(
                "embedding and prelude stay at their initial values: truncation cuts the state, "
                "and without a linear or additive injection no later pass sees them again"
            )

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (B, T, V) at the evaluation's recurrence count; tokens are (B, T)."""
        logits: Tensor = self.network(tokens, recurrences=self.eval_recurrences)
        return logits

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Mean cross-entropy over the targets, nats per token."""
        inputs, targets = batch
        loss = self.network.loss(inputs, targets)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch: Batch, batch_idx: int) -> dict[str, Tensor]:
        """Cross-entropy of every target: `nats` (B, T), zero where ignored, and `targets`."""
        inputs, targets = batch
        nats = self.network.nats(inputs, targets, recurrences=self.eval_recurrences)
        return {"nats": nats, "targets": targets}

    def test_step(self, batch: Batch, batch_idx: int) -> dict[str, Tensor]:
        """As `validation_step`."""
        return self.validation_step(batch, batch_idx)

    def predict_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Nats of every target: (B, T)."""
        return self.validation_step(batch, batch_idx)["nats"]

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """One optimizer, its rates transferred to the plan, and the schedule over it."""
        if self.plan is None:
            raise UserError(
                "no horizon is known: add looped.callbacks.horizon.Horizon to the trainer's "
                "callbacks (`looped fit` always has it)"
            )
        rates = self.rates.transferred(self.architecture, self.plan)
        optimizer = make_optimizer(self.network, rates, arguments=self.optimizer_args)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {
                "scheduler": LambdaLR(optimizer, self._learning_rate_factor),
                "interval": "step",
            },
        }

    def _learning_rate_factor(self, step: int) -> float:
        assert self.plan is not None
        if self.schedule == "linear":
            return linear_decay(step, self.plan.steps)
        return warmup_stable_decay(
            step,
            self.plan.steps,
            warmup_fraction=self.warmup_fraction,
            decay_fraction=self.decay_fraction,
        )
