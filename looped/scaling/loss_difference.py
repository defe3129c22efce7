"""The training's part of a comparison: by how much the best loss of two recipes differs.

A cell is a recurrence count at one budget (or token count). Every recurrence count may have a
difference of its own; how much the differences of one count scatter between budgets, pooled over
the counts, is the error of all of them.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from looped.scaling.isoflop import isoflop_parabolas
from looped.scaling.levels import is_budget


@dataclass(frozen=True, kw_only=True)
class LossDifference:
    """Best loss of the second recipe minus that of the first, in nats per token.

    Attributes:
        value: mean over the cells of r > 1 that both have.
        ends: of its interval, with a t quantile; null where no recurrence count has two cells.
        by_recurrence: the mean for each recurrence count.
        at: what the runs of a cell share, `budget` or `token count`: where recipes have budgets in
            common, cells of equal token counts are left out.
        num_cells: that went into the mean.
    """

    value: float
    ends: tuple[float, float] | None
    by_recurrence: dict[int, float]
    at: Literal["budget", "token count"]
    num_cells: int


def loss_difference(
    first: pd.DataFrame, second: pd.DataFrame, *, level: float
) -> LossDifference | None:
    """Compare the best losses of two tables of runs; null without a cell that both have.

    The best loss of a cell is the vertex of its iso-FLOP parabola, or its lowest loss where the
    parabola has no minimum inside the runs.

    Args:
        first: runs of the recipe to compare with.
        second: runs of the recipe to judge.
        level: nominal coverage of the interval.
    """
    best = [_best_losses(table) for table in (first, second)]
    common = best[0].keys() & best[1].keys()
    if not common:
        return None
    budgets = {cell for cell in common if is_budget(cell[0])}
    by_recurrence: dict[int, list[float]] = {}
    for cell in sorted(budgets or common, key=lambda cell: cell[1]):
        by_recurrence.setdefault(cell[1], []).append(best[1][cell] - best[0][cell])
    differences = np.concatenate(list(by_recurrence.values()))
    value = float(differences.mean())

    ends = None
    freedom = len(differences) - len(by_recurrence)
    if freedom:
        squares = sum(float(np.var(own) * len(own)) for own in by_recurrence.values())
        error = np.sqrt(squares / freedom / len(differences))
        reach = float(stats.t.ppf(0.5 + level / 2, freedom) * error)
        ends = (value - reach, value + reach)
    return LossDifference(
        value=value,
        ends=ends,
        by_recurrence={r: float(np.mean(own)) for r, own in by_recurrence.items()},
        at="budget" if budgets else "token count",
        num_cells=len(differences),
    )


def _best_losses(table: pd.DataFrame) -> dict[tuple[str, int], float]:
    losses = {}
    for cell in isoflop_parabolas(table[table["recurrences"] > 1]):
        lowest = table.loc[
            (table["level"] == cell.level) & (table["recurrences"] == cell.recurrences), "loss"
        ].min()
        vertex = cell.loss if cell.inside and cell.loss is not None else float(lowest)
        losses[(cell.level, cell.recurrences)] = vertex
    return losses
