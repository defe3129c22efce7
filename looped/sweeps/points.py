"""Planned runs as the points that the law is fitted to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from looped.scaling.expected_error import (
    ExpectedDifference,
    ExpectedError,
    expected_difference,
    expected_error,
)
from looped.scaling.levels import at_common_levels
from looped.scaling.prior import Prior
from looped.sweeps.cells import PLAIN_RECIPE
from looped.sweeps.plan import PlannedRun


def points(runs: Sequence[PlannedRun]) -> pd.DataFrame:
    """One row per run: its name, recurrences, n_once, n_rec, tokens, and the level they share.

    Tokens are those of whole steps, as they will be trained.
    """
    groups = [run.architecture.parameter_groups() for run in runs]
    return pd.DataFrame(
        {
            "run": [run.name for run in runs],
            "recurrences": [run.architecture.recurrences for run in runs],
            "n_once": [group.n_once for group in groups],
            "n_rec": [group.n_rec for group in groups],
            "tokens": [run.plan.tokens for run in runs],
            "level": [f"{run.horizon[0]} {run.horizon[1]:.3g}" for run in runs],
        }
    )


def by_recipe(runs: Sequence[PlannedRun]) -> dict[str, list[PlannedRun]]:
    """The runs with which `looped phi` will fit each recipe: its looped ones, and plain ones.

    Those of r = 1 belong to the baseline; other recipes share them at their own budgets or token
    counts. Controls are left aside.
    """
    fitted = [run for run in runs if run.control is None]
    plain = [run for run in fitted if run.architecture.recurrences == 1]
    looped = [run for run in fitted if run.architecture.recurrences > 1]
    names = dict.fromkeys(run.recipe for run in looped) or {PLAIN_RECIPE: None}
    recipes = {}
    for name in names:
        own = [run for run in looped if run.recipe == name]
        horizons = {run.horizon for run in own}
        shared = [run for run in plain if name == run.recipe or run.horizon in horizons]
        recipes[name] = shared + own
    return recipes


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What the runs of a sweep can be expected to tell.

    Attributes:
        errors: of phi, by recipe.
        against: the recipe that the others are compared with: the baseline where there is one.
        differences: of each other recipe's phi minus that one's, on the budgets that both have.
    """

    errors: dict[str, ExpectedError]
    against: str
    differences: dict[str, ExpectedDifference]


def expected_of(
    runs: Sequence[PlannedRun], prior: Prior, *, fix: Mapping[str, float] | None = None
) -> Expected:
    """What these runs can be expected to tell.

    Args:
        runs: of a sweep.
        prior: law and noise to expect.
        fix: parameters that the fit will hold.
    """
    tables = {name: points(own) for name, own in by_recipe(runs).items()}
    against = PLAIN_RECIPE if PLAIN_RECIPE in tables else next(iter(tables))
    errors = {name: expected_error(table, prior, fix=fix) for name, table in tables.items()}
    differences = {
        name: expected_difference(*at_common_levels(tables[against], table), prior=prior, fix=fix)
        for name, table in tables.items()
        if name != against
    }
    return Expected(errors=errors, against=against, differences=differences)
