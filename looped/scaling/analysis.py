"""Everything `looped phi` says of one recipe, computed once for the terminal, JSON and figures."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from looped.scaling.fit import DEFAULT_DELTA, Estimator, FitResult, fit_law
from looped.scaling.hypotheses import PhiTest, phi_test
from looped.scaling.intervals import DEFAULT_KIND, PhiIntervals, phi_intervals
from looped.scaling.isoflop import Parabola, isoflop_parabolas
from looped.scaling.laws_by_recurrence import laws_by_recurrence
from looped.scaling.loss_gap import GapParts, loss_gap
from looped.scaling.nested import NestedFit, nested_fits
from looped.scaling.prediction import PredictionError, leave_one_cell_out, leave_top_level_out
from looped.scaling.residual_tables import GroupResidual, residuals_by
from looped.scaling.seed_noise import SeedNoise, seed_noise
from looped.scaling.sensitivity import Alternative, sensitivity
from looped.scaling.worth import Worth, worth_of


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """One recipe.

    Attributes:
        fit: the law.
        kind: of the headline's interval.
        intervals: that interval, the profile and whatever else was asked for.
        tests: of phi = 0 and phi = 1, by those names; null where phi cannot be told.
        noise: between runs that differ in the seed alone; null without any, or without a law.
        by_recurrence: residuals by recurrence count; empty where there is no law.
        by_level: residuals by budget or token count; empty likewise.
        nested: the laws beside the plain one, by form; empty where phi cannot be told.
        worth: of each recurrence count, and its shape; null likewise.
        gap: between looped and plain models, by r, and what explains it; empty likewise.
        laws: of each recurrence count alone; empty where phi cannot be told.
        parabolas: iso-FLOP parabola of each cell; empty for a table without levels.
        predictions: errors on runs left out of the fit.
        sensitivity: phi under other choices; empty where phi cannot be told.
        warnings: of the fit and of its resamples.
    """

    fit: FitResult
    kind: str
    intervals: PhiIntervals
    tests: dict[str, PhiTest | None]
    noise: SeedNoise | None
    by_recurrence: dict[str, GroupResidual]
    by_level: dict[str, GroupResidual]
    nested: dict[str, NestedFit]
    worth: Worth | None
    gap: dict[int, GapParts]
    laws: dict[int, FitResult]
    parabolas: tuple[Parabola, ...]
    predictions: tuple[PredictionError, ...]
    sensitivity: tuple[Alternative, ...]
    warnings: tuple[str, ...]


def analyse(
    runs: pd.DataFrame,
    *,
    estimator: Estimator = "huber",
    delta: float = DEFAULT_DELTA,
    fix: Mapping[str, float] | None = None,
    kind: str = DEFAULT_KIND,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    other_runs: Mapping[str, pd.DataFrame] | None = None,
) -> Analysis:
    """Fit a table of runs and say what the fit is worth.

    Arguments as of `fit_law`, `phi_intervals` and, for `other_runs`, `sensitivity`.
    """
    fit = fit_law(runs, estimator=estimator, delta=delta, fix=fix)
    kinds = dict.fromkeys([kind, "percentile", "profile"])
    intervals = phi_intervals(fit, list(kinds), level=level, resamples=resamples, seed=seed)
    chosen = intervals.intervals[kind]
    nested = nested_fits(fit, level=level)
    return Analysis(
        fit=fit,
        kind=kind,
        intervals=intervals,
        tests={f"phi={value:g}": phi_test(fit, value, interval=chosen) for value in (0.0, 1.0)},
        noise=seed_noise(fit) if fit.law else None,
        by_recurrence=residuals_by(fit, "recurrences") if fit.law else {},
        by_level=residuals_by(fit, "level") if fit.law and "level" in fit.runs else {},
        nested=nested,
        worth=worth_of(fit, nested, level=level),
        gap=loss_gap(nested["offset"]) if nested else {},
        laws=laws_by_recurrence(fit) if fit.phi is not None else {},
        parabolas=tuple(isoflop_parabolas(fit.runs)) if "level" in fit.runs else (),
        predictions=tuple(
            error for error in (leave_one_cell_out(fit), leave_top_level_out(fit)) if error
        ),
        sensitivity=tuple(sensitivity(fit, other_runs=other_runs)),
        warnings=fit.warnings + _warnings(intervals),
    )


def _warnings(intervals: PhiIntervals) -> tuple[str, ...]:
    warnings = []
    for interval in intervals.intervals.values():
        if interval.failed:
            warnings.append(
                f"{interval.failed} of {interval.resamples} resamples of the {interval.kind} "
                "interval failed and were left out"
            )
        if interval.why_none and not interval.why_none.startswith("phi "):
            warnings.append(f"no complete {interval.kind} interval: {interval.why_none}")
    return tuple(warnings)
