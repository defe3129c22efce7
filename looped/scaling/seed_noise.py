"""How much of a loss is chance: runs that differ in their seed alone, against what the law leaves.

Runs of one size and length scatter about their mean by s. Where the law holds, what it leaves
between the means is no more than that: under least squares the two mean squares have the ratio F
with the degrees of freedom of either (the lack-of-fit test). A noise far below the residual says
that more runs of the same sizes would not help: the law is what misses.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from looped.scaling.fit import FitResult
from looped.scaling.law import Floats

SAME_SIZE = ["recipe", "recurrences", "n_once", "n_rec", "tokens"]


@dataclass(frozen=True, kw_only=True)
class SeedNoise:
    """Scatter of runs that are the same but for chance.

    Attributes:
        noise: its standard deviation, pooled, in nats per token.
        groups: of runs of one size and length.
        freedom: runs in them, less one for each.
        p: that a law which holds leaves as much; null without degrees of freedom for it, for a fit
            that is no least-squares fit, and where phi cannot be told.
    """

    noise: float
    groups: int
    freedom: int
    p: float | None


def seed_noise(fit: FitResult) -> SeedNoise | None:
    """The scatter among the runs of a fit; null where no two differ in the seed alone.

    Runs of one size and recipe do so when their seeds are known and all differ; others may differ
    in anything and are left aside.
    """
    if "seed" not in fit.runs:
        return None
    known = fit.runs[fit.runs["seed"].notna()]
    columns = [name for name in SAME_SIZE if name in known]
    repeated = [
        own["loss"].to_numpy(dtype=float)
        for _, own in known.groupby(columns)
        if len(own) > 1 and own["seed"].is_unique
    ]
    freedom = sum(len(own) - 1 for own in repeated)
    if not freedom:
        return None
    return SeedNoise(
        noise=float(np.sqrt(_squares(repeated) / freedom)),
        groups=len(repeated),
        freedom=freedom,
        p=_lack_of_fit(fit, _squares([np.log(own) for own in repeated]), freedom=freedom),
    )


def _squares(groups: list[Floats]) -> float:
    """Sum of squares about the mean of each group."""
    return float(sum(np.square(own - own.mean()).sum() for own in groups))


def _lack_of_fit(fit: FitResult, squares: float, *, freedom: int) -> float | None:
    """Of log L, in which the squares were minimised."""
    left = fit.num_runs - fit.num_free - freedom
    if fit.phi is None or fit.estimator != "least_squares" or left < 1 or not squares:
        return None
    assert fit.objective is not None
    missed = 2 * fit.objective - squares
    return float(stats.f.sf((missed / left) / (squares / freedom), left, freedom))
