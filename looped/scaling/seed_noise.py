"""How much of a loss is chance: runs that differ in their seed alone, against what the law leaves.

Runs of one size and length scatter about their mean by s. Where the law holds, what it leaves
between the means is no more than that: under least squares the two mean squares have the ratio F
with the degrees of freedom of either (the lack-of-fit test). A noise far below the residual says
that more runs of the same sizes would not help: the law is what misses.

That test takes runs as independent. Runs of one seed that see the same text in the same order may
not be: where one budget and width has several seeds of several recurrence counts, the scatter of a
seed's mean over the counts is held against what is left in each run (two-way analysis of variance).
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from looped.scaling.fit import FitResult
from looped.scaling.law import Floats

SAME_SIZE = ["recipe", "recurrences", "n_once", "n_rec", "tokens"]
SAME_BLOCK = ["recipe", "level", "width"]


@dataclass(frozen=True, kw_only=True)
class SharedChance:
    """Whether runs of one seed, at one budget (or token count) and width, err together.

    Attributes:
        own: standard deviation of what they do not share, in nats per token.
        p: that they share nothing.
    """

    own: float
    p: float


@dataclass(frozen=True, kw_only=True)
class SeedNoise:
    """Scatter of runs that are the same but for chance.

    Attributes:
        noise: its standard deviation, pooled, in nats per token.
        groups: of runs of one size and length.
        freedom: runs in them, less one for each.
        p: that a law which holds leaves as much; null without degrees of freedom for it, for a fit
            that is no least-squares fit, and where phi cannot be told.
        shared: what runs of one seed have in common; null without two seeds of two recurrence
            counts at one budget and width.
    """

    noise: float
    groups: int
    freedom: int
    p: float | None
    shared: SharedChance | None

    def err_together(self, level: float) -> bool:
        """Whether runs of one seed do, at this level: p, which takes them as apart, is no test."""
        return self.shared is not None and self.shared.p < 1 - level


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
        shared=_shared(known),
    )


def _shared(known: pd.DataFrame) -> SharedChance | None:
    """Analysis of variance over blocks of one budget and width.

    Counts of a single seed tell nothing and are left aside, then seeds that not all counts have. Of
    a block with s seeds and c counts, the means of the seeds have s - 1 degrees of freedom and
    what is left beside those of the counts has (s - 1) (c - 1).
    """
    if not {"level", "width"} <= set(known):
        return None
    between = left = 0.0
    freedom_between = freedom_left = 0
    for _, block in known.groupby([name for name in SAME_BLOCK if name in known]):
        if block.duplicated(["seed", "recurrences"]).any():
            continue
        losses = block.pivot(index="seed", columns="recurrences", values="loss")
        table = losses.dropna(axis="columns", thresh=2).dropna().to_numpy(dtype=float)
        if min(table.shape) < 2:
            continue
        table = table - table.mean(axis=0)
        of_seed = table.mean(axis=1, keepdims=True)
        between += table.shape[1] * float(np.square(of_seed).sum())
        left += float(np.square(table - of_seed).sum())
        freedom_between += table.shape[0] - 1
        freedom_left += (table.shape[0] - 1) * (table.shape[1] - 1)
    if not left:
        return None
    ratio = (between / freedom_between) / (left / freedom_left)
    return SharedChance(
        own=float(np.sqrt(left / freedom_left)),
        p=float(stats.f.sf(ratio, freedom_between, freedom_left)),
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
