"""What the interactive figure needs: the fitted law, sizes to draw it at, and what was measured.

The page evaluates the law itself, with the fitted coefficients and the reader's phi. Everything
else is computed here.
"""

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from looped.report.answer import Answer
from looped.scaling.analysis import Analysis
from looped.scaling.figure_style import INK, Palette
from looped.scaling.fit import FitResult
from looped.scaling.law import Floats
from looped.scaling.levels import is_budget
from looped.scaling.size_family import flops_per_token, size_families

PHI_STEP = 0.01
PHI_SPAN = (0.0, 1.0)
"""Always within reach of the slider, which also reaches beyond the fitted value."""

PHI_REACH = 0.1


def explorer_data(analyses: Mapping[str, Analysis], *, palette: Palette) -> dict[str, Any] | None:
    """Plain JSON types, by recipe; null when no recipe has a law and sizes to draw it at.

    Of each recipe: the law's coefficients, the range of the sliders, for every recurrence count
    sizes and FLOPs per token, the runs, and the minima of their parabolas. `by` says what the
    second slider sets: the training FLOPs of a run or its tokens, whichever the runs share.
    """
    recipes = {
        name: recipe
        for name, analysis in analyses.items()
        if (recipe := _recipe(name, analysis)) is not None
    }
    if not recipes:
        return None
    colours = {
        str(r): "var(--ink)" if look.colour == INK else look.colour for r, look in palette.items()
    }
    return {"colours": colours, "recipes": recipes}


def _recipe(name: str, analysis: Analysis) -> dict[str, Any] | None:
    fit = analysis.fit
    if fit.law is None:
        return None
    by, level = _levels(fit)
    families = {
        r: family
        for r, family in size_families(fit.runs).items()
        if by == "tokens" or family.flops_per_token is not None
    }
    if not families:
        return None
    return {
        "law": {key: getattr(fit.law, key) for key in ("E", "A", "alpha", "B", "beta", "phi")},
        "identifiable": fit.identifiable,
        "phi": _phi_slider(fit.law.phi),
        "example": Answer.of(name, analysis).recurrences,
        "by": by,
        "levels": sorted(set(level[np.isfinite(level)].tolist())),
        "families": {
            str(r): {
                "n_once": family.n_once.tolist(),
                "n_rec": family.n_rec.tolist(),
                "flops_per_token": (
                    family.flops_per_token.tolist()
                    if by == "flops" and family.flops_per_token is not None
                    else None
                ),
            }
            for r, family in families.items()
        },
        "runs": {
            "recurrences": fit.runs["recurrences"].astype(int).tolist(),
            **{
                column: fit.runs[column].astype(float).tolist()
                for column in ("n_once", "n_rec", "tokens", "loss")
            },
            "level": [value if np.isfinite(value) else None for value in level.tolist()],
        },
        "minima": [
            {
                "recurrences": cell.recurrences,
                "n_total": cell.n_total,
                "loss": cell.loss,
                "level": float(level[(fit.runs["level"] == cell.level).to_numpy()][0]),
            }
            for cell in analysis.parabolas
            if cell.inside and by == "flops" and is_budget(cell.level)
        ],
    }


def _phi_slider(phi: float) -> dict[str, float]:
    """Ends that lie whole steps from the fitted value, so that it can be returned to."""
    below = math.ceil(max(phi - PHI_SPAN[0], PHI_REACH) / PHI_STEP)
    above = math.ceil(max(PHI_SPAN[1] - phi, PHI_REACH) / PHI_STEP)
    return {"step": PHI_STEP, "below": below, "above": above}


def _levels(fit: FitResult) -> tuple[Literal["flops", "tokens"], Floats]:
    """What runs share, and how much of it each run has: the median of its level; shape (n,).

    NaN for runs of unknown FLOPs in a grid of budgets. Runs that share nothing have their own.
    """
    runs = fit.runs
    tokens = runs["tokens"].astype(float)
    flops = flops_per_token(runs) * tokens
    by: Literal["flops", "tokens"] = "flops"
    if "level" not in runs:
        told = bool(flops.notna().all())
        by, level = ("flops", flops) if told else ("tokens", tokens)
    else:
        budgets = runs["level"].map(is_budget)
        by, level = ("flops", flops.where(budgets)) if budgets.any() else ("tokens", tokens)
        level = level.groupby(runs["level"]).transform("median")
    return by, np.asarray(level, dtype=float)
