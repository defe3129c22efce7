"""How long a run trains: from a horizon (FLOPs, tokens, steps) to a number of optimizer steps.

steps = round(budget / (F B))       F FLOPs per token, B tokens per optimizer step
"""

from dataclasses import dataclass

from looped.errors import UserError


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """The planned horizon of one run.

    Attributes:
        steps: optimizer steps.
        tokens_per_step: B, training tokens (targets) per optimizer step over all processes.
        flops_per_token: F, training FLOPs per token.
        budget_flops: the budget that was asked for; null when the horizon was given otherwise.
    """

    steps: int
    tokens_per_step: int
    flops_per_token: int
    budget_flops: int | None = None

    @property
    def tokens(self) -> int:
        """D, planned training tokens."""
        return self.steps * self.tokens_per_step

    @property
    def train_flops(self) -> int:
        """C, planned training FLOPs."""
        return self.tokens * self.flops_per_token


def plan_training(
    *,
    flops_per_token: int,
    tokens_per_step: int,
    non_embedding: int,
    budget_flops: float | None = None,
    tokens: float | None = None,
    steps: float | None = None,
    tokens_per_parameter: float | None = None,
) -> TrainingPlan:
    """Turn exactly one kind of horizon into a plan.

    Args:
        flops_per_token: F of the architecture.
        tokens_per_step: B, over all processes and accumulated batches.
        non_embedding: N_once + N_rec, for `tokens_per_parameter`.
        budget_flops: training FLOPs to spend.
        tokens: training tokens to consume.
        steps: optimizer steps.
        tokens_per_parameter: training tokens per non-embedding parameter.

    Raises:
        UserError: none or several of the four given, a value that is not positive, or a horizon
            below one step.
    """
    kinds = {
        "budget_flops": budget_flops,
        "tokens": tokens,
        "steps": steps,
        "tokens_per_parameter": tokens_per_parameter,
    }
    given = {name: value for name, value in kinds.items() if value is not None}
    if len(given) != 1:
        what = " and ".join(f"horizon.{name}" for name in given) or "none"
        raise UserError(f"a run needs one horizon, got {what}: give exactly one of {_names(kinds)}")
    ((name, value),) = given.items()
    if not 0 < value < float("inf"):
        raise UserError(f"horizon.{name} {value:g} must be a positive number")
    if tokens_per_step < 1:
        raise UserError(
            f"a step of {tokens_per_step} tokens trains nothing: batch size, processes and "
            "accumulated batches must be 1 or more"
        )
    per_step = {
        "budget_flops": flops_per_token * tokens_per_step,
        "tokens": tokens_per_step,
        "steps": 1,
        "tokens_per_parameter": tokens_per_step / non_embedding,
    }[name]
    planned = round(value / per_step)
    if planned < 1:
        raise UserError(
            f"horizon.{name} {value:g} is below half a step ({per_step:g} per step): "
            "raise it or take a smaller batch"
        )
    return TrainingPlan(
        steps=planned,
        tokens_per_step=tokens_per_step,
        flops_per_token=flops_per_token,
        budget_flops=None if budget_flops is None else int(budget_flops),
    )


def _names(kinds: dict[str, float | None]) -> str:
    *most, last = (f"horizon.{name}" for name in kinds)
    return f"{', '.join(most)} or {last}"
