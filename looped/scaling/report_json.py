"""What `looped phi --json` writes: DESIGN section 6, schema 1.

A number that the data cannot carry is null: phi, its interval and the law where the fit is not
identifiable, E, B and beta where beta had to be held for want of token counts. The optimum as it
was found stands under `best_fit` all the same, for those who want to look.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from looped.scaling.analysis import Analysis
from looped.scaling.coverage import Coverage
from looped.scaling.exclusion import Exclusion
from looped.scaling.fit import FitResult
from looped.scaling.intervals import Interval
from looped.scaling.law import LAW_NAMES
from looped.scaling.nested import NestedFit

SCHEMA = 1


def report_json(
    analyses: Mapping[str, Analysis],
    excluded: Sequence[Exclusion],
    *,
    coverage: Mapping[str, Sequence[Coverage]],
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """Plain JSON types; finite numbers and nulls only.

    Args:
        analyses: by recipe.
        excluded: what was left out.
        coverage: of intervals, by recipe; recipes for which it was not measured have none.
        warnings: of the pool; those of a fit stand with it.
    """
    return {
        "schema": SCHEMA,
        "recipes": {
            name: fit_json(analysis) | {"coverage": [asdict(c) for c in coverage.get(name, [])]}
            for name, analysis in analyses.items()
        },
        "excluded": [asdict(left) for left in excluded],
        "warnings": list(warnings),
    }


def fit_json(analysis: Analysis) -> dict[str, Any]:
    """One recipe."""
    fit = analysis.fit
    intervals = analysis.intervals.intervals
    chosen = intervals[analysis.kind]
    return {
        "phi": {
            "value": fit.phi,
            "stderr": chosen.stderr if chosen.stderr is not None else fit.stderr,
            "ci": _ends(chosen),
            "ci_level": chosen.level,
            "ci_kind": chosen.kind,
            "profile_ci": _ends(intervals["profile"]),
            "intervals": {kind: asdict(interval) for kind, interval in intervals.items()},
        },
        "law": law_json(fit),
        "best_fit": asdict(fit.law) if fit.law else None,
        "estimator": fit.estimator,
        "delta": fit.delta if np.isfinite(fit.delta) else None,
        "held": fit.held,
        "objective": fit.objective,
        "r2": fit.r2,
        "rmse": fit.rmse,
        "n_runs": fit.num_runs,
        "n_cells": fit.num_cells,
        "n_parameters": fit.num_free,
        "seed_noise": asdict(analysis.noise) if analysis.noise else None,
        "by_recurrence": _by_recurrence(analysis),
        "by_level": {name: asdict(group) for name, group in analysis.by_level.items()},
        "power_law": _power_law(analysis),
        "gains": _gains(analysis),
        "worth": _worth(analysis),
        "laws": {form: _nested(nested, fit) for form, nested in analysis.nested.items()},
        "loss_gap": {str(r): asdict(g) | {"shares": g.shares} for r, g in analysis.gap.items()},
        "tests": {name: asdict(test) if test else None for name, test in analysis.tests.items()},
        "isoflop": [asdict(parabola) for parabola in analysis.parabolas],
        "predictions": [asdict(error) for error in analysis.predictions],
        "sensitivity": [asdict(row) for row in analysis.sensitivity],
        "starts": _starts(fit),
        "conditioning": asdict(fit.conditioning) if fit.conditioning else None,
        "identifiable": fit.identifiable,
        "faults": list(fit.faults),
        "warnings": list(analysis.warnings),
    }


def law_json(fit: FitResult) -> dict[str, float | None]:
    """E, A, alpha, B, beta; null where the data cannot carry them."""
    if fit.law is None or not fit.identifiable:
        return dict.fromkeys(LAW_NAMES)
    return {name: None if name in fit.uncarried else getattr(fit.law, name) for name in LAW_NAMES}


def _ends(interval: Interval) -> list[float | None] | None:
    """Both ends; null when neither is known."""
    if interval.low is None and interval.high is None:
        return None
    return [interval.low, interval.high]


def _by_recurrence(analysis: Analysis) -> dict[str, Any]:
    """Residuals of each recurrence count, its own factor, and the law of it alone."""
    rows: dict[str, Any] = {}
    for r, group in analysis.by_recurrence.items():
        gain = analysis.worth.gains.get(int(r)) if analysis.worth else None
        law = analysis.laws.get(int(r))
        rows[r] = asdict(group) | {
            "factor": gain.value if gain else None,
            "phi": gain.exponent if gain else None,
            "law": law_json(law) if law else None,
        }
    return rows


def _power_law(analysis: Analysis) -> dict[str, float | None] | None:
    """Whether r^phi describes the separate factors; null when it could not be tried."""
    worth = analysis.worth
    return None if worth is None else {"statistic": worth.statistic, "p": worth.p}


def _gains(analysis: Analysis) -> dict[str, Any]:
    """Worth of each r > 1 in blocks; empty where the runs cannot tell."""
    if analysis.worth is None:
        return {}
    return {
        str(r): {
            "value": gain.value,
            "ci": None if gain.low is None else [gain.low, gain.high],
            "ci_level": gain.level,
            "phi": gain.exponent,
            "phi_stderr": gain.stderr,
        }
        for r, gain in analysis.worth.gains.items()
    }


def _worth(analysis: Analysis) -> dict[str, Any] | None:
    """The shape of the worths; null where the runs cannot tell them."""
    if analysis.worth is None:
        return None
    names = ("verdict", "sentence", "p", "p_cells", "p_step")
    return {name: getattr(analysis.worth, name) for name in names}


def _nested(nested: NestedFit, fit: FitResult) -> dict[str, Any]:
    """One law beside the plain one."""
    law = nested.law if nested.identifiable and nested.law else dict.fromkeys(LAW_NAMES)
    return {
        "values": nested.values,
        "intervals": {name: asdict(interval) for name, interval in nested.intervals.items()},
        "law": {name: None if name in fit.uncarried else law[name] for name in LAW_NAMES},
        "objective": nested.objective,
        "n_parameters": nested.num_free,
        "tests": {
            "plain": {
                "statistic": nested.statistic,
                "p": nested.p,
                "p_cells": nested.p_cells,
                "delta_aicc": nested.delta_aicc,
            }
        },
        "identifiable": nested.identifiable,
        "faults": list(nested.faults),
    }


def _starts(fit: FitResult) -> dict[str, Any] | None:
    best = fit.optimum
    if best is None:
        return None
    return {
        "tried": best.num_starts,
        "reached": best.num_reached,
        "worst_objective": best.worst_objective,
    }
