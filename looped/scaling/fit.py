"""Fit the law to a table of runs: one call, one documented result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from looped.errors import UserError
from looped.scaling.huber import NORMAL_EFFICIENCY, noise_scale
from looped.scaling.identifiability import (
    HELD_BETA,
    MIN_SPARE_RUNS,
    Conditioning,
    conditioning,
    design_faults,
    optimum_faults,
)
from looped.scaling.law import PHI, Design, Floats, Law
from looped.scaling.levels import number_of_levels
from looped.scaling.minimise import Optimum, minimise
from looped.scaling.points import RANGES, why_unfit
from looped.scaling.robust_error import phi_errors

Estimator = Literal["huber", "least_squares"]
ESTIMATORS: tuple[str, ...] = get_args(Estimator)

DEFAULT_DELTA = 1e-3
"""Of Huber's function, in units of log L: the paper's."""

FIXABLE = {"phi": (-2.0, 3.0), "alpha": (0.01, 3.0), "beta": (0.01, 3.0), "E": (1e-3, 1e2)}
"""Parameters that can be held, each with the smallest and largest value that makes sense."""

FEW_STARTS = 5
"""Starting points of a fit that is one of many beside the main one."""

DELTA_RANGE = (1e-6, 100.0)
"""Of Huber's delta; at the upper end every residual is squared."""

FAR_ABOVE_DELTA = 4.0
"""Noise over delta from which the fit is said to be in effect least absolute deviations (3.5 on the
published runs)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FitResult:
    """The law fitted to a set of runs, and whether to believe it.

    Attributes:
        runs: the table that was fitted, one row per run.
        estimator: `huber` or `least_squares`.
        delta: of Huber's function, in units of log L; infinity under least squares.
        held: parameters that were not fitted, with their values (phi, alpha, beta, log_E).
        identifiable: whether these runs can tell phi. A fit with phi held is identifiable when it
            has runs enough.
        faults: why not, in words; empty when identifiable.
        warnings: what a reader should know although the fit stands.
        phi: the exponent; null when not identifiable.
        stderr: its cluster-robust standard error (`robust_error.py`); null when phi is, when it
            was held, or when there are not more cells than parameters.
        law: the optimum's E, A, alpha, B, beta, phi, also where it should not be believed; null
            when there were too few runs to fit at all.
        objective: sum of rho(log L_hat - log L), half the sum of squares under least squares;
            null when law is.
        r2: 1 - residual / total sum of squares of the loss in nats; null when law is, or when all
            losses are equal.
        rmse: root mean square residual in nats; null when law is.
        num_free: parameters that were fitted.
        cells: number of the cell of each run: those of one budget and recurrence count; (n,).
        uncarried: names of the law's numbers that mean nothing although phi stands: E, B and beta
            where beta had to be held for want of token counts; empty otherwise.
        conditioning: condition number, inflation, gradient and bounds; null when law is.
        optimum: the starts, how many reached the optimum, lmfit's own result; null when law is.
        design: the runs as arrays, for further computation.
    """

    runs: pd.DataFrame
    estimator: Estimator
    delta: float
    held: dict[str, float]
    identifiable: bool
    faults: tuple[str, ...]
    warnings: tuple[str, ...]
    phi: float | None
    stderr: float | None
    law: Law | None
    objective: float | None
    r2: float | None
    rmse: float | None
    num_free: int
    cells: NDArray[np.intp] = field(repr=False)
    uncarried: tuple[str, ...]
    conditioning: Conditioning | None
    optimum: Optimum | None = field(repr=False)
    design: Design = field(repr=False)

    @property
    def num_runs(self) -> int:
        """n, the runs fitted."""
        return len(self.runs)

    @property
    def num_cells(self) -> int:
        """G, the cells they lie in."""
        return int(self.cells.max()) + 1 if len(self.cells) else 0

    @property
    def design_tells_phi(self) -> bool:
        """Whether phi was fitted and the design of the runs, if not their losses, can tell it."""
        if "phi" in self.held or self.optimum is None:
            return False
        return not design_faults(self.runs, num_free=self.num_free, held=self.held)

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of `fit_law` that fit other runs in the same way."""
        fix = {name: value for name, value in self.held.items() if name != "log_E"}
        if "log_E" in self.held:
            fix["E"] = float(np.exp(self.held["log_E"]))
        delta = {"delta": self.delta} if np.isfinite(self.delta) else {}
        return {"estimator": self.estimator, "fix": fix, **delta}

    @property
    def residuals(self) -> Floats:
        """Residuals log L_hat - log L of each run; shape (n,). Only where law is not null."""
        assert self.optimum is not None
        return self.design.log_prediction(self.optimum.theta) - self.design.log_loss

    @property
    def residuals_nats(self) -> Floats:
        """L - L_hat of each run in nats per token; shape (n,). Only where law is not null."""
        assert self.optimum is not None
        predicted = np.exp(self.design.log_prediction(self.optimum.theta))
        return np.asarray(np.exp(self.design.log_loss) - predicted)


def fit_law(
    runs: pd.DataFrame,
    *,
    estimator: Estimator = "huber",
    delta: float = DEFAULT_DELTA,
    fix: Mapping[str, float] | None = None,
    polish: int = 20,
) -> FitResult:
    """Fit L = E + A (N_once + r^phi N_rec)^-alpha + B D^-beta.

    Args:
        runs: at least `recurrences, n_once, n_rec, tokens, loss`; also used when there: `level`
            (what `read_runs` calls the shared budget or token count), `epochs`.
        estimator: `huber` minimises Huber's function of log L_hat - log L, `least_squares` its
            square.
        delta: where Huber's function turns linear, in units of log L.
        fix: values to hold, of phi, alpha, beta or E.
        polish: how many starting points lmfit descends from.

    Returns:
        Also for runs that cannot carry phi: then `identifiable` is false and `faults` says why.

    Raises:
        UserError: an unknown estimator or parameter, a delta or a held value beyond reason, a
            missing column or a run that cannot be fitted.
    """
    _check(runs, estimator, delta)
    held = _held(fix)
    delta = delta if estimator == "huber" else float("inf")
    warnings = _warnings_of_runs(runs)
    uncarried: tuple[str, ...] = ()
    if "beta" not in held and len(runs) and number_of_levels(runs["tokens"]) == 2:
        held["beta"] = HELD_BETA
        uncarried = ("E", "B", "beta")
        warnings.append(
            f"only two token counts: beta cannot be told from E and is held at {HELD_BETA}; "
            "E, B and beta mean nothing here, phi is not affected"
        )
    design = Design.of_runs(runs)
    num_free = len(design.names) - len(held)
    faults = design_faults(runs, num_free=num_free, held=held)
    cells = cells_of(runs)
    if len(runs) > 1 and len(np.unique(cells)) == len(runs):
        warnings.append(
            "no two runs share a budget (or token count) and r, so every interval takes the runs "
            "as independent; where they do share one, name it in a column budget_flops"
        )
    common: dict[str, Any] = {
        "runs": runs.reset_index(drop=True),
        "estimator": estimator,
        "delta": delta,
        "held": held,
        "num_free": num_free,
        "uncarried": uncarried,
        "cells": cells,
        "design": design,
    }
    if len(runs) < num_free + MIN_SPARE_RUNS:
        return FitResult(
            identifiable=False,
            faults=tuple(faults),
            warnings=tuple(warnings),
            phi=None,
            stderr=None,
            law=None,
            objective=None,
            r2=None,
            rmse=None,
            conditioning=None,
            optimum=None,
            **common,
        )

    # A design that cannot tell phi has no single optimum to make sure of, and long valleys.
    polish = min(polish, 3) if faults else polish
    optimum = minimise(design, delta=delta, held=held, polish=polish)
    found = conditioning(design, optimum.theta, free=optimum.free, delta=delta)
    low, high = design.bounds()
    box = {n: (lo, hi) for n, lo, hi in zip(design.names, low, high, strict=True)}
    faults += optimum_faults(found, box)
    residuals = design.log_prediction(optimum.theta) - design.log_loss
    warnings += _warnings_of_fit(residuals, delta, optimum)
    nats = np.exp(design.log_loss) - np.exp(design.log_prediction(optimum.theta))
    loss = np.exp(design.log_loss)
    total = float(((loss - loss.mean()) ** 2).sum())
    identifiable = not faults
    stderr = None
    if identifiable and "phi" not in held and cells.max() + 1 > num_free:
        stderr = float(
            phi_errors(
                design, optimum.theta[np.newaxis], delta=delta, free=optimum.free, cells=cells
            )[0]
        )
    return FitResult(
        identifiable=identifiable,
        faults=tuple(faults),
        warnings=tuple(warnings),
        phi=float(optimum.theta[PHI]) if identifiable else None,
        stderr=stderr,
        law=design.to_law(optimum.theta),
        objective=optimum.objective,
        r2=float(1 - (nats**2).sum() / total) if total > 0 else None,
        rmse=float(np.sqrt((nats**2).mean())),
        conditioning=found,
        optimum=optimum,
        **common,
    )


def cells_of(runs: pd.DataFrame) -> NDArray[np.intp]:
    """Number of each run's cell: the runs of one budget (or token count) and recurrence count."""
    level = runs["level"] if "level" in runs else np.log(runs["tokens"]).round(2)
    codes, _ = pd.factorize(pd.Series(zip(level, runs["recurrences"], strict=True)))
    return np.asarray(codes)


def _check(runs: pd.DataFrame, estimator: str, delta: float) -> None:
    if estimator not in ESTIMATORS:
        raise UserError(f"estimator {estimator!r} is unknown: choose {' or '.join(ESTIMATORS)}")
    check_delta(delta)
    missing = [name for name in RANGES if name not in runs]
    if missing:
        raise UserError(f"the table of runs lacks the column {missing[0]!r}")
    for row, point in enumerate(runs[list(RANGES)].to_dict("records")):
        why = why_unfit({str(name): value for name, value in point.items()})
        if why is not None:
            raise UserError(f"run {row} of the table cannot be fitted: its {why}")


def check_delta(delta: float) -> None:
    """Refuse a delta at which Huber's function cannot be told from a constant or overflows.

    Raises:
        UserError: naming it and the range.
    """
    low, high = DELTA_RANGE
    if not low <= delta <= high:
        raise UserError(
            f"delta {delta:g} is not between {low:g} and {high:g}: choose one near the noise of "
            "log L, such as 0.001"
        )


def check_fixed(name: str, value: float) -> None:
    """Refuse a parameter that cannot be held, or not at this value.

    Raises:
        UserError: naming it and the range.
    """
    if name not in FIXABLE:
        raise UserError(f"cannot fix {name!r}: choose {', '.join(FIXABLE)}")
    low, high = FIXABLE[name]
    if not low - 1e-9 <= value <= high + 1e-9:  # E comes back from a logarithm
        raise UserError(f"cannot fix {name} at {value:g}: it lies between {low:g} and {high:g}")


def _held(fix: Mapping[str, float] | None) -> dict[str, float]:
    held = {}
    for name, value in (fix or {}).items():
        check_fixed(name, value)
        held["log_E" if name == "E" else name] = float(np.log(value)) if name == "E" else value
    return held


def _warnings_of_runs(runs: pd.DataFrame) -> list[str]:
    warnings = []
    if "epochs" in runs:
        repeated = int((runs["epochs"].fillna(0) > 1).sum())
        if repeated:
            warnings.append(
                f"{repeated} of {len(runs)} runs saw their data more than once: "
                "the law assumes fresh tokens"
            )
    starved = int((runs["tokens"] < runs["n_once"] + runs["n_rec"]).sum())
    if starved:
        warnings.append(
            f"{starved} of {len(runs)} runs saw fewer tokens than they have parameters: "
            "far from where the law was established"
        )
    return warnings


def _warnings_of_fit(residuals: Floats, delta: float, optimum: Optimum) -> list[str]:
    warnings = []
    scale = noise_scale(residuals)
    if np.isfinite(delta) and scale > FAR_ABOVE_DELTA * delta:
        warnings.append(
            f"residuals ({scale:.2g} in log L) lie far above delta {delta:g}: the fit is in effect "
            f"least absolute deviations; --delta {NORMAL_EFFICIENCY * scale:.2g} fits this noise"
        )
    if optimum.aborted:
        warnings.append("the best descent ran out of evaluations")
    if optimum.num_reached == 1 and optimum.num_starts > 1:
        warnings.append(
            f"only one of {optimum.num_starts} starts reached the optimum: it may not be the lowest"
        )
    return warnings
