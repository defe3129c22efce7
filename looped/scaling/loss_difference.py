"""The training's part of a comparison: by how much the best loss of two recipes differs.

A cell is a recurrence count at one budget (or token count). Every recurrence count may have a
difference of its own. Cells of one budget err together, and the difference may drift with the
budget: so it is the budgets that are independent, and their scatter is the error.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from looped.scaling.isoflop import isoflop_parabolas
from looped.scaling.levels import is_budget, level_order


@dataclass(frozen=True, kw_only=True)
class LossDifference:
    """Best loss of the second recipe minus that of the first, in nats per token.

    Attributes:
        value: mean over the cells of r > 1 that both have.
        level: nominal coverage of its interval.
        ends: of that interval, with a t quantile over budgets; null with one budget.
        by_recurrence: the mean for each recurrence count.
        by_level: the mean at each budget or token count, small ones first.
        at: what the runs of a cell share, `budget` or `token count`: where recipes have budgets in
            common, cells of equal token counts are left out.
    """

    value: float
    level: float
    ends: tuple[float, float] | None
    by_recurrence: dict[int, float]
    by_level: dict[str, float]
    at: Literal["budget", "token count"]


def loss_difference(
    first: pd.DataFrame, second: pd.DataFrame, *, level: float
) -> LossDifference | None:
    """Compare the best losses of two tables of runs; null without a cell that both have.

    The best loss of a cell is the vertex of its iso-FLOP parabola where both recipes have one
    inside their runs, else the lowest loss, of a size that has several runs their mean.

    Args:
        first: runs of the recipe to compare with.
        second: runs of the recipe to judge.
        level: nominal coverage of the interval.
    """
    cells = _differences(first, second)
    if cells.empty:
        return None
    budgets = cells["level"].map(is_budget)
    if budgets.any():
        cells = cells[budgets]
    value = float(cells["difference"].mean())

    ends = None
    number = cells["level"].nunique()
    if number > 1:
        own = cells.groupby("recurrences")["difference"].transform("mean")
        together = (cells["difference"] - own).groupby(cells["level"]).sum()
        error = np.sqrt(np.square(together).sum() * number / (number - 1)) / len(cells)
        reach = float(stats.t.ppf(0.5 + level / 2, number - 1) * error)
        ends = (value - reach, value + reach)
    by_level = {str(name): own.mean() for name, own in cells.groupby("level")["difference"]}
    return LossDifference(
        value=value,
        level=level,
        ends=ends,
        by_recurrence={
            int(r): float(cells.loc[cells["recurrences"] == r, "difference"].mean())
            for r in sorted(cells["recurrences"].unique())
        },
        by_level={name: float(by_level[name]) for name in sorted(by_level, key=level_order)},
        at="budget" if budgets.any() else "token count",
    )


def _differences(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """One row per common cell of r > 1: level, recurrences, difference."""
    cells = [_cells(table) for table in (first, second)]
    rows = []
    for key in sorted(cells[0].keys() & cells[1].keys()):
        of_first, of_second = cells[0][key], cells[1][key]
        if of_first.vertex is not None and of_second.vertex is not None:
            difference = of_second.vertex - of_first.vertex
        else:
            difference = of_second.lowest - of_first.lowest
        rows.append((*key, difference))
    return pd.DataFrame(rows, columns=["level", "recurrences", "difference"])


@dataclass(frozen=True, kw_only=True)
class _Best:
    """Of one cell: the minimum of its parabola inside the runs, if any, and its lowest loss."""

    vertex: float | None
    lowest: float


def _cells(table: pd.DataFrame) -> dict[tuple[str, int], _Best]:
    looped = table[table["recurrences"] > 1]
    sizes = looped.groupby(["level", "recurrences", "n_once", "n_rec"])["loss"].mean()
    lowest = sizes.groupby(["level", "recurrences"]).min()
    return {
        (cell.level, cell.recurrences): _Best(
            vertex=cell.loss if cell.inside else None,
            lowest=float(lowest[cell.level, cell.recurrences]),
        )
        for cell in isoflop_parabolas(looped)
    }
