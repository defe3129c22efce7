"""Intervals for phi, by name.

Which one is the default was decided by how often each holds the truth on the published design, with
independent and with cell-correlated noise: docs/intervals.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from looped.errors import UserError
from looped.scaling.fit import FitResult
from looped.scaling.fitted import Fitted
from looped.scaling.jackknife import MIN_CELLS, jackknife_error
from looped.scaling.profile import profile_phi
from looped.scaling.resampling import Resampled, bootstrap_cells, wild_cells
from looped.scaling.robust_error import phi_errors

DEFAULT_KIND = "jackknife"

DESCRIPTIONS = {
    "jackknife": "delete-a-cell jackknife, t quantile",
    "cluster": "cluster-robust error, t quantile",
    "percentile": "block bootstrap over cells, percentile",
    "studentised": "block bootstrap over cells, studentised",
    "wild": "wild cluster bootstrap, studentised",
    "profile": "profile of the objective, runs as independent",
    "wald": "error of independent runs, t quantile",
}

KINDS = tuple(DESCRIPTIONS)

MIN_RESAMPLES = 100
"""Resamples that must succeed before their quantiles are reported."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An interval for phi.

    Attributes:
        kind: one of `KINDS`.
        level: nominal coverage, such as 0.95.
        low: lower end; null when these data give none.
        high: upper end; null likewise.
        stderr: standard error behind it; null for profile and percentile.
        freedom: degrees of freedom of its t quantile; null where it has none.
        why_none: why an end is null; empty otherwise.
        resamples: refits it rests on; null when none were made.
        failed: refits that failed and were left out; null when none were made.
    """

    kind: str
    level: float
    low: float | None
    high: float | None
    stderr: float | None = None
    freedom: int | None = None
    why_none: str = ""
    resamples: int | None = None
    failed: int | None = None


@dataclass(frozen=True, kw_only=True)
class PhiIntervals:
    """Several intervals of one fit, and the refits behind them.

    Attributes:
        intervals: by kind.
        bootstrap: the block bootstrap's refits; null when no kind needed them.
        wild: the wild bootstrap's refits; null likewise.
    """

    intervals: dict[str, Interval]
    bootstrap: Resampled | None
    wild: Resampled | None


def phi_intervals(
    fit: FitResult,
    kinds: Sequence[str] = (DEFAULT_KIND, "profile"),
    *,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> PhiIntervals:
    """Intervals for the phi of a fit.

    Args:
        fit: with phi free.
        kinds: of `KINDS`.
        level: nominal coverage, between 0 and 1.
        resamples: refits of each bootstrap.
        seed: of the draws.

    Returns:
        With null ends where the fit is not identifiable or the refits fail.

    Raises:
        UserError: an unknown kind, or a level or number of resamples that cannot be.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise UserError(f"interval {kind!r} is unknown: choose {', '.join(KINDS)}")
    check_resampling(level, resamples=resamples, seed=seed)
    if fit.phi is None or "phi" in fit.held:
        why = "phi was held" if "phi" in fit.held else "phi is not identifiable"
        nothing = {kind: _none(kind, level, why) for kind in kinds}
        return PhiIntervals(intervals=nothing, bootstrap=None, wild=None)
    return intervals_of(Fitted.of(fit), kinds, level=level, resamples=resamples, seed=seed)


def intervals_of(
    fitted: Fitted, kinds: Sequence[str], *, level: float, resamples: int, seed: int
) -> PhiIntervals:
    """As `phi_intervals`, of the arrays of a fit that is known to be sound."""
    bootstrap = wild = None
    if {"percentile", "studentised"} & set(kinds):
        bootstrap = bootstrap_cells(fitted, resamples=resamples, seed=seed)
    if "wild" in kinds:
        wild = wild_cells(fitted, resamples=resamples, seed=seed)
    intervals = {}
    for kind in kinds:
        if kind == "percentile":
            assert bootstrap is not None
            intervals[kind] = _percentile(bootstrap, level)
        elif kind == "studentised":
            assert bootstrap is not None
            intervals[kind] = _studentised(fitted, bootstrap, kind, level)
        elif kind == "wild":
            assert wild is not None
            intervals[kind] = _studentised(fitted, wild, kind, level)
        elif kind == "profile":
            profile = profile_phi(fitted, level=level)
            open_end = profile.low is None or profile.high is None
            intervals[kind] = Interval(
                kind="profile",
                level=level,
                low=profile.low,
                high=profile.high,
                why_none="the objective stays flat up to the bound of phi" if open_end else "",
            )
        else:
            intervals[kind] = _from_error(fitted, kind, level)
    return PhiIntervals(intervals=intervals, bootstrap=bootstrap, wild=wild)


def check_resampling(level: float, *, resamples: int, seed: int) -> None:
    """Refuse a level, a number of resamples or a seed that cannot be.

    Raises:
        UserError: naming the value.
    """
    if not 0 < level < 1:
        raise UserError(f"level {level} is not between 0 and 1: 0.95 is usual")
    if resamples < 1:
        raise UserError(f"resamples {resamples} is below 1: 1000 is usual")
    if seed < 0:
        raise UserError(f"seed {seed} is negative: choose 0 or more")


def _none(kind: str, level: float, why: str) -> Interval:
    return Interval(kind=kind, level=level, low=None, high=None, why_none=why)


def _from_error(fitted: Fitted, kind: str, level: float) -> Interval:
    """The interval phi -+ t x standard error."""
    k = int(fitted.free.sum())
    if kind == "jackknife":
        # Each cell left out is one observation of the error: G - 1 degrees of freedom, also where
        # there are hardly more cells than parameters (docs/intervals.md).
        freedom = fitted.num_cells - 1
        if freedom + 1 < MIN_CELLS:
            return _none(kind, level, f"{fitted.num_cells} cells, fewer than {MIN_CELLS}")
        values, told = fitted.loop_values(fitted.without_each_cell())
        if not told[:, 0].all():
            return _none(kind, level, "without one of the cells phi cannot be told")
        error = jackknife_error(values[:, 0])
    else:
        # The residuals of a fit are too small by its parameters, so these lose them.
        freedom = (len(fitted.design) if kind == "wald" else fitted.num_cells) - k
        if freedom < 1:
            return _none(kind, level, f"{fitted.num_cells} cells for {k} parameters")
        cells = np.arange(len(fitted.design)) if kind == "wald" else fitted.cells
        error = float(
            phi_errors(
                fitted.design,
                fitted.theta[np.newaxis],
                delta=fitted.delta,
                free=fitted.free,
                cells=cells,
            )[0]
        )
    reach = float(stats.t.ppf(0.5 + level / 2, freedom)) * error
    return Interval(
        kind=kind,
        level=level,
        low=fitted.phi - reach,
        high=fitted.phi + reach,
        stderr=error,
        freedom=freedom,
    )


def _percentile(resampled: Resampled, level: float) -> Interval:
    total = len(resampled.phi) + resampled.failed
    if len(resampled.phi) < min(MIN_RESAMPLES, total):
        return _none("percentile", level, f"{resampled.failed} of {total} resamples failed")
    low, high = np.quantile(resampled.phi, [0.5 - level / 2, 0.5 + level / 2])
    return Interval(
        kind="percentile",
        level=level,
        low=float(low),
        high=float(high),
        resamples=total,
        failed=resampled.failed,
    )


def _studentised(fitted: Fitted, resampled: Resampled, kind: str, level: float) -> Interval:
    """The interval phi - t* x standard error, t* being quantiles of (phi* - phi) / error*."""
    total = len(resampled.phi) + resampled.failed
    if len(resampled.phi) < min(MIN_RESAMPLES, total):
        return _none(kind, level, f"{resampled.failed} of {total} resamples failed")
    error = float(
        phi_errors(
            fitted.design,
            fitted.theta[np.newaxis],
            delta=fitted.delta,
            free=fitted.free,
            cells=fitted.cells,
        )[0]
    )
    t = (resampled.phi - fitted.phi) / resampled.errors
    low, high = np.quantile(t, [0.5 - level / 2, 0.5 + level / 2])
    return Interval(
        kind=kind,
        level=level,
        low=fitted.phi - float(high) * error,
        high=fitted.phi - float(low) * error,
        stderr=error,
        resamples=total,
        failed=resampled.failed,
    )
