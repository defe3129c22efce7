"""How far phi moves when a choice that could have been made otherwise is made otherwise."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from looped.scaling.fit import DEFAULT_DELTA, DELTA_RANGE, FEW_STARTS, FitResult, fit_law
from looped.scaling.huber import NORMAL_EFFICIENCY, noise_scale


@dataclass(frozen=True, kw_only=True)
class Alternative:
    """phi under one other choice.

    Attributes:
        change: the choice, in words.
        num_runs: that were fitted.
        phi: null where these runs or this choice cannot tell it.
        why_none: the first reason; empty when phi is there.
    """

    change: str
    num_runs: int
    phi: float | None
    why_none: str


def sensitivity(
    fit: FitResult, *, other_runs: Mapping[str, pd.DataFrame] | None = None
) -> list[Alternative]:
    """Refit under other choices; empty where phi was held or cannot be told.

    Estimator and delta, the injection counted with the recurrent block, each recurrence count left
    out, runs of uncertain quality left out.

    Args:
        fit: as it was made.
        other_runs: further tables to fit in place of its own, by the choice they stand for.
    """
    if fit.phi is None or "phi" in fit.held:
        return []
    rows = [_row(change, refit) for change, refit in _refits(fit)]
    for change, runs in (other_runs or {}).items():
        rows.append(_row(change, fit_law(runs, **fit.options, polish=FEW_STARTS)))
    return rows


def _refits(fit: FitResult) -> Iterator[tuple[str, FitResult]]:
    runs, options = fit.runs, fit.options

    def refit(table: pd.DataFrame, **changes: object) -> FitResult:
        return fit_law(table, **(options | changes), polish=FEW_STARTS)

    if np.isfinite(fit.delta):
        yield "least squares on log L", refit(runs, estimator="least_squares")
        fitting = float(f"{NORMAL_EFFICIENCY * noise_scale(fit.residuals):.1g}")
        if fitting != fit.delta and DELTA_RANGE[0] <= fitting <= DELTA_RANGE[1]:
            yield f"delta {fitting:g}, which fits the noise", refit(runs, delta=fitting)
    else:
        yield f"Huber, delta {DEFAULT_DELTA:g}", refit(runs, estimator="huber", delta=DEFAULT_DELTA)
    if "n_injection" in runs and runs["n_injection"].fillna(-1).between(0, runs["n_once"]).all():
        moved = runs.assign(
            n_once=runs["n_once"] - runs["n_injection"],
            n_rec=runs["n_rec"] + runs["n_injection"],
        )
        yield "injection counted in N_rec", refit(moved)
    if "quality" in runs and (runs["quality"] == "uncertain").any():
        yield "without runs of uncertain quality", refit(runs[runs["quality"] != "uncertain"])
    for r in sorted(runs["recurrences"].unique()):
        yield f"without r = {r}", refit(runs[runs["recurrences"] != r])


def _row(change: str, fit: FitResult) -> Alternative:
    return Alternative(
        change=change,
        num_runs=fit.num_runs,
        phi=fit.phi,
        why_none=fit.faults[0] if fit.faults else "",
    )
