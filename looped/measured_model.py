"""What a LightningModule tells so that its runs get a phi.

`LoopedLM` tells it, and any other module may (docs/own-model.md). The measuring callbacks ask for
nothing else of a model, except for what its steps take and return:

    batch                     (inputs, targets); targets of any shape, one per trained token
    validation_step returns   {"nats": loss of every target, zero where ignored; "targets": ...}
"""

from typing import Any, Protocol, cast

from lightning.pytorch import LightningModule

from looped.architecture import Convention, ParameterGroups
from looped.errors import UserError
from looped.training_plan import TrainingPlan


class MeasuredModel(Protocol):
    """A model whose runs can be fitted.

    Attributes:
        plan: set by the horizon callback before the optimizer is made, so that a learning rate
            can decay over it.
    """

    plan: TrainingPlan | None

    @property
    def recurrences(self) -> int:
        """r, how often the recurrent block runs."""

    @property
    def seq_len(self) -> int:
        """T, targets per training row."""

    def parameter_groups(self) -> ParameterGroups:
        """Number of parameters by group; every parameter in exactly one."""

    def flops_per_token(self, convention: Convention = "paper") -> int:
        """Training FLOPs per token, forward and backward, as `looped.architecture` counts them."""

    def describe(self) -> dict[str, Any]:
        """Constructor arguments for the record, plain JSON values."""


MEMBERS = ("plan", "recurrences", "seq_len", "parameter_groups", "flops_per_token", "describe")


def measured_model(pl_module: LightningModule) -> MeasuredModel:
    """The module as one that tells what is measured.

    Raises:
        UserError: it does not.
    """
    missing = [name for name in MEMBERS if not hasattr(pl_module, name)]
    if missing:
        raise UserError(
            f"{type(pl_module).__name__} lacks {', '.join(missing)}: a model whose runs are to get "
            "a phi tells them, see docs/own-model.md"
        )
    return cast(MeasuredModel, pl_module)


def check_groups(pl_module: LightningModule) -> None:
    """Refuse groups that leave parameters out or count some twice; phi would be of another model.

    Raises:
        UserError: they do not add up to the parameters of the module.
    """
    counted = measured_model(pl_module).parameter_groups().total
    there = sum(parameter.numel() for parameter in pl_module.parameters())
    if counted != there:
        raise UserError(
            f"the parameter groups of {type(pl_module).__name__} add up to {counted:,}, but it has "
            f"{there:,} parameters: each must be in exactly one group"
        )
