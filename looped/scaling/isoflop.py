"""Iso-FLOP parabolas: within a cell, loss is a parabola in log N, with the best size at its vertex.

L = c2 (log N)^2 + c1 log N + c0,   N* = exp(-c1 / 2 c2),   N = N_once + N_rec
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from looped.scaling.law import Floats
from looped.scaling.levels import level_order

MIN_RUNS = 3

FARTHEST_VERTEX = float(np.log(1e6))
"""A vertex a million times as large or small as the runs is a parabola that is a straight line."""


@dataclass(frozen=True, kw_only=True)
class Parabola:
    """The parabola of one cell.

    Attributes:
        level: the budget the runs share, as text.
        recurrences: r.
        num_runs: runs in the cell.
        coefficients: c2, c1, c0 in nats per (log N - log_size_mean)^2, ^1, ^0; null with fewer
            than three runs.
        log_size_mean: where log N is centred.
        n_total: N*, unique parameters at the vertex; null unless the parabola opens upwards and
            bends.
        loss: at the vertex, in nats; null likewise.
        inside: whether the vertex lies between the smallest and the largest run; if not it is an
            extrapolation.
        fit_error: largest distance of a run from the parabola in nats; null without one.
    """

    level: str
    recurrences: int
    num_runs: int
    coefficients: tuple[float, float, float] | None
    log_size_mean: float
    n_total: float | None
    loss: float | None
    inside: bool
    fit_error: float | None

    def loss_at(self, n_total: ArrayLike) -> Floats:
        """The parabola's loss at these sizes; only where coefficients is not null."""
        assert self.coefficients is not None
        x = np.log(np.asarray(n_total, dtype=float)) - self.log_size_mean
        return np.asarray(np.polyval(self.coefficients, x))


def isoflop_parabolas(runs: pd.DataFrame) -> list[Parabola]:
    """One parabola per cell, in order of level and recurrence count.

    Args:
        runs: a table with `level, recurrences, n_once, n_rec, loss`.
    """
    pairs = set(zip(runs["level"].astype(str), runs["recurrences"].astype(int), strict=True))
    return [
        _parabola(level, r, runs[(runs["level"] == level) & (runs["recurrences"] == r)])
        for level, r in sorted(pairs, key=lambda pair: (level_order(pair[0]), pair[1]))
    ]


def _parabola(level: str, recurrences: int, cell: pd.DataFrame) -> Parabola:
    size = (cell["n_once"] + cell["n_rec"]).to_numpy(dtype=float)
    loss = cell["loss"].to_numpy(dtype=float)
    centre = float(np.log(size).mean())
    x = np.log(size) - centre
    coefficients = None
    n_total = lowest = error = None
    inside = False
    if len(np.unique(size)) >= MIN_RUNS:
        c2, c1, c0 = map(float, np.polyfit(x, loss, 2))
        coefficients = (c2, c1, c0)
        error = float(np.abs(np.polyval(coefficients, x) - loss).max())
        vertex = -c1 / (2 * c2) if c2 > 0 else np.inf
        if abs(vertex) < FARTHEST_VERTEX:
            n_total, lowest = float(np.exp(vertex + centre)), c0 - c1**2 / (4 * c2)
            inside = bool(x.min() <= vertex <= x.max())
    return Parabola(
        level=level,
        recurrences=recurrences,
        num_runs=len(cell),
        coefficients=coefficients,
        log_size_mean=centre,
        n_total=n_total,
        loss=lowest,
        inside=inside,
        fit_error=error,
    )
