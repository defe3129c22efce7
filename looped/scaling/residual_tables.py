"""Where the law misses: its residuals by recurrence count and by budget."""

from dataclasses import dataclass

import numpy as np

from looped.scaling.fit import FitResult
from looped.scaling.levels import level_order


@dataclass(frozen=True, kw_only=True)
class GroupResidual:
    """Residuals L - L_hat of one group of runs, in nats.

    Attributes:
        num_runs: in the group.
        bias: their mean; far from 0 when the law bends away from this group.
        rmse: root mean square.
    """

    num_runs: int
    bias: float
    rmse: float


def residuals_by(fit: FitResult, column: str) -> dict[str, GroupResidual]:
    """Residuals of a fit that has a law, grouped by a column of its runs, in ascending order."""
    residuals = fit.residuals_nats
    groups = {}
    for value in _ordered(fit, column):
        chosen = residuals[(fit.runs[column] == value).to_numpy()]
        groups[str(value)] = GroupResidual(
            num_runs=len(chosen),
            bias=float(chosen.mean()),
            rmse=float(np.sqrt((chosen**2).mean())),
        )
    return groups


def _ordered(fit: FitResult, column: str) -> list[str | int]:
    """Values of the column; levels, which are text, by the tokens and FLOPs they stand for."""
    values = list(fit.runs[column].unique())
    if column == "level":
        return sorted(values, key=level_order)
    return sorted(values)
