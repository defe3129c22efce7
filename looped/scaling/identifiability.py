"""What the data cannot carry, said before and after the fit.

Before: designs in which phi has nothing to be measured against. After: an optimum at a bound of its
box, one at which the gradient has not vanished, or one at which phi can be traded against the other
parameters. `success` of the minimiser knows none of these.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from looped.scaling.huber import ROUND_OFF, psi
from looped.scaling.law import PHI, Design, Floats
from looped.scaling.levels import number_of_levels
from looped.scaling.loop_terms import Form

MIN_SPARE_RUNS = 2
"""Runs needed beyond the number of fitted parameters."""

TRADE_LIMIT = 30.0
"""Largest factor by which the freedom of the other parameters may widen the error of phi (root of
its variance inflation; 2 on the published grid)."""

CONDITION_LIMIT = 1e5
"""Largest condition number of the Jacobian with columns of unit length (150 on the published
grid)."""

BOUND_TOLERANCE = 1e-4
"""A parameter this close to its bound, in parts of its box, is at it."""

GRADIENT_LIMIT = 1e-3
"""Largest cosine between the Jacobian's columns and the vector of psi at an optimum."""

HELD_BETA = 0.37
"""Value given to beta where only two token counts are there: that of the published runs."""

TIED_SPREAD = 0.05
"""Tokens per parameter that vary less than this, relatively, at one recurrence count are tied."""


@dataclass(frozen=True, kw_only=True)
class Conditioning:
    """How well the optimum is determined.

    Attributes:
        condition_number: of the Jacobian with columns of unit length, over the free parameters.
        phi_inflation: factor by which the other parameters widen the error of phi; 1 when phi can
            be read off alone, null when phi was held.
        gradient: largest cosine between a column of the Jacobian and psi; 0 at an optimum and
            where the fit is exact but for rounding.
        at_bounds: names of the parameters at a bound of their box.
    """

    condition_number: float
    phi_inflation: float | None
    gradient: float
    at_bounds: tuple[str, ...]


def design_faults(runs: pd.DataFrame, *, num_free: int, held: Mapping[str, float]) -> list[str]:
    """Why phi cannot be told from these runs, whatever their losses; empty when it can.

    Args:
        runs: the table of runs, with `level` (the budget or token count they share) when known.
        num_free: parameters to be fitted.
        held: those that keep a value.
    """
    faults = []
    needed = num_free + MIN_SPARE_RUNS
    if len(runs) < needed:
        law = f" (six, less {', '.join(sorted(map(_plain, held)))}, held)" if held else ""
        faults.append(
            f"{len(runs)} runs for {num_free} parameters{law}: at least {needed} are needed"
        )
    if "phi" in held:
        return faults
    counts = sorted(int(r) for r in runs["recurrences"].unique())
    if len(counts) < 2:
        faults.append(f"a single recurrence count, r = {', '.join(map(str, counts))}")
    elif counts[0] > 1 and "alpha" not in held:
        faults.append(
            "no run with r = 1, the unit in which a recurrence is measured "
            "(--no-match-budgets takes those of other budgets, --fix alpha=VALUE replaces them)"
        )
    if "level" in runs and runs["level"].nunique() < 2:
        faults.append(f"a single budget ({runs['level'].iloc[0]})")
    elif number_of_levels(runs["tokens"]) < 2:
        faults.append("a single token count")
    elif _ratio_spread(runs) < TIED_SPREAD:
        faults.append("tokens tied to parameters: the size term cannot be told from the data term")
    sizes = (runs["n_once"] + runs["n_rec"]).groupby(runs["recurrences"])
    if sizes.apply(number_of_levels).max() < 2:
        faults.append("a single width at every recurrence count")
    return faults


def form_faults(runs: pd.DataFrame, form: Form) -> list[str]:
    """Why these runs cannot tell the parameters that a form of the law adds; empty when they can.

    Args:
        runs: the table of runs.
        form: of the law.
    """
    if form in ("plain", "gains"):
        return []
    counts = runs["recurrences"]
    faults = []
    if counts[counts > 1].nunique() < 2:
        faults.append("a single recurrence count above 1: phi and the offset change alike with it")
    if not (counts == 1).any():
        faults.append("no run with r = 1, from which an offset is measured")
    return faults


def _plain(name: str) -> str:
    """log_E as a reader knows it."""
    return name.removeprefix("log_")


def _ratio_spread(runs: pd.DataFrame) -> float:
    """Standard deviation of log(tokens / parameters) within recurrence counts."""
    ratio = np.log(runs["tokens"].astype(float) / (runs["n_once"] + runs["n_rec"]))
    return float((ratio - ratio.groupby(runs["recurrences"]).transform("mean")).std(ddof=0))


def conditioning(
    design: Design, theta: Floats, *, free: NDArray[np.bool_], delta: float
) -> Conditioning:
    """Condition number, inflation of phi, gradient and bounds at an optimum.

    Args:
        design: the n runs.
        theta: the optimum; shape (p,).
        free: which parameters were fitted; shape (p,).
        delta: of Huber's function.
    """
    prediction, jacobian = design.log_prediction_and_jacobian(theta)
    columns = jacobian[:, free]
    lengths = np.linalg.norm(columns, axis=0)
    unit = columns / np.where(lengths > 0, lengths, 1.0)
    influence = psi(prediction - design.log_loss, delta)
    size = float(np.linalg.norm(influence))
    exact = size <= ROUND_OFF * np.sqrt(len(influence))

    low, high = design.bounds()
    margin = BOUND_TOLERANCE * (high - low)
    touching = free & ((theta <= low + margin) | (theta >= high - margin))
    inside = ~touching[free]
    gradient = np.zeros(0) if exact else np.abs(unit.T @ influence)[inside] / size
    return Conditioning(
        condition_number=float(np.linalg.cond(unit)),
        phi_inflation=_inflation(unit, int(free[:PHI].sum())) if free[PHI] else None,
        gradient=float(gradient.max(initial=0.0)),
        at_bounds=tuple(n for n, t in zip(design.names, touching, strict=True) if t),
    )


def _inflation(unit_columns: Floats, position: int) -> float:
    """1 / sine of the angle between one column and the span of the others."""
    column = unit_columns[:, position]
    others = np.delete(unit_columns, position, axis=1)
    solution, *_ = np.linalg.lstsq(others, column, rcond=None)
    sine = float(np.linalg.norm(column - others @ solution))
    return 1 / sine if sine > 0 else float("inf")


def optimum_faults(found: Conditioning, law_bounds: Mapping[str, tuple[float, float]]) -> list[str]:
    """Why the optimum cannot be believed, in words; empty when it can.

    Args:
        found: what was measured at the optimum.
        law_bounds: lower and upper bound of each parameter, by name.
    """
    faults = []
    for name in found.at_bounds:
        low, high = law_bounds[name]
        if name.startswith("log_"):
            name, low, high = name.removeprefix("log_"), np.exp(low), np.exp(high)
        faults.append(f"{name} at the bound of its box [{low:.3g}, {high:.3g}]")
    if found.phi_inflation is not None and found.phi_inflation > TRADE_LIMIT:
        faults.append(
            f"phi can be traded against the other parameters (error inflated "
            f"{found.phi_inflation:.3g} times, limit {TRADE_LIMIT:g})"
        )
    if found.condition_number > CONDITION_LIMIT:
        faults.append(
            f"condition number {found.condition_number:.2g} is beyond {CONDITION_LIMIT:.0g}: "
            "several parameters cannot be told apart"
        )
    if found.gradient > GRADIENT_LIMIT:
        faults.append(f"the descent stopped short of an optimum (gradient {found.gradient:.2g})")
    return faults
