"""Planned runs as the points that the law is fitted to."""

from collections.abc import Mapping, Sequence

import pandas as pd

from looped.scaling.expected_error import ExpectedError, expected_error
from looped.scaling.prior import Prior
from looped.sweeps.cells import PLAIN_RECIPE
from looped.sweeps.plan import PlannedRun


def points(runs: Sequence[PlannedRun]) -> pd.DataFrame:
    """One row per run: recurrences, n_once, n_rec, tokens, and the level they share.

    Tokens are those of whole steps, as they will be trained.
    """
    groups = [run.architecture.parameter_groups() for run in runs]
    return pd.DataFrame(
        {
            "recurrences": [run.architecture.recurrences for run in runs],
            "n_once": [group.n_once for group in groups],
            "n_rec": [group.n_rec for group in groups],
            "tokens": [run.plan.tokens for run in runs],
            "level": [f"{run.horizon[0]} {run.horizon[1]:.3g}" for run in runs],
        }
    )


def by_recipe(runs: Sequence[PlannedRun]) -> dict[str, list[PlannedRun]]:
    """The runs with which each recipe is fitted: its own looped ones and the r = 1 runs of all.

    Controls are left aside, as `looped phi` does.
    """
    fitted = [run for run in runs if run.control is None]
    plain = [run for run in fitted if run.architecture.recurrences == 1]
    looped = [run for run in fitted if run.architecture.recurrences > 1]
    names = dict.fromkeys(run.recipe for run in looped) or {PLAIN_RECIPE: None}
    return {name: plain + [run for run in looped if run.recipe == name] for name in names}


def expected_errors(
    runs: Sequence[PlannedRun], prior: Prior, *, fix: Mapping[str, float] | None = None
) -> dict[str, ExpectedError]:
    """The standard error of phi that each recipe can expect from these runs.

    Args:
        runs: of a sweep.
        prior: law and noise to expect.
        fix: parameters that the fit will hold.
    """
    recipes = by_recipe(runs).items()
    return {name: expected_error(points(own), prior, fix=fix) for name, own in recipes}
