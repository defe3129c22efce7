"""Two recipes: did the loop get better, or only the training?

The loop's part is phi, and the price of being looped at all (`pair_verdict.py`); the training's is
the loss at equal budget. The two can point in opposite directions: truncated backpropagation lowers
the loss and lowers phi (arXiv 2604.21106). Both recipes are measured against the same plain runs,
so the error of those is common to both and must be drawn once: cells of r = 1 that both fits use
are resampled together, the others separately.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from looped.errors import UserError
from looped.scaling.fit import DEFAULT_DELTA, FEW_STARTS, Estimator, FitResult, fit_law
from looped.scaling.fitted import Fitted
from looped.scaling.intervals import MIN_RESAMPLES, check_resampling
from looped.scaling.joint_cells import JointCells
from looped.scaling.law import Floats
from looped.scaling.law_differences import (
    Difference,
    LawDifference,
    law_differences,
    plain_difference,
)
from looped.scaling.levels import at_common_levels
from looped.scaling.loop_terms import Form
from looped.scaling.loss_difference import LossDifference, loss_difference
from looped.scaling.pair_verdict import PairVerdict, Verdict, pair_verdict, verdict_on
from looped.scaling.runs import RunPool


@dataclass(frozen=True, kw_only=True)
class OtherEstimator:
    """The same two recipes, fitted by the estimator that was not asked for.

    Attributes:
        name: of the estimator.
        delta_phi: by the plain law; null when either phi cannot be told.
        verdict: on its interval, the joint jackknife's.
        disagrees: whether that is known and not the verdict of the comparison.
    """

    name: Estimator
    delta_phi: Difference | None
    verdict: Verdict
    disagrees: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """The second recipe against the first.

    Attributes:
        first: fit of the first recipe, on the budgets both have.
        second: fit of the second.
        delta_phi: phi of the second minus phi of the first; null when either cannot be told.
        level: nominal coverage of the intervals.
        low: lower end of the joint block bootstrap's percentile interval; null when delta_phi is,
            or when too many resamples failed.
        high: upper end; null likewise.
        jackknife: ends of the joint delete-a-cell jackknife's interval, with a t quantile; null
            when delta_phi is, with fewer than four cells, or when one cell is all that tells phi.
        failed: resamples in which either fit failed.
        resamples: that were drawn; 0 when delta_phi is null.
        shared_cells: cells of r = 1 that both fits use.
        loss: difference of the best losses; null without a cell of r > 1 that both have.
        verdict: on phi of the plain law: better or worse when both intervals lie on one side of 0
            (with few cells the bootstrap's is too narrow, docs/intervals.md), else not
            distinguishable; unknown without an interval.
        other_estimator: delta_phi and its verdict by the other estimator.
        laws: what moved under each form of the law, `plain` first.
        warnings: what a reader should know of the runs compared.
        pair: the verdict on the change per recurrence and the change for being looped; null where
            these runs cannot tell the offset law of both recipes.
    """

    first: FitResult
    second: FitResult
    delta_phi: float | None
    level: float
    low: float | None
    high: float | None
    jackknife: tuple[float, float] | None
    failed: int
    resamples: int
    shared_cells: int
    loss: LossDifference | None
    verdict: Verdict
    other_estimator: OtherEstimator
    laws: dict[Form, LawDifference]
    warnings: tuple[str, ...]
    pair: PairVerdict | None


def compare(
    pool: RunPool,
    first: str,
    *,
    second: str,
    estimator: Estimator = "huber",
    delta: float = DEFAULT_DELTA,
    fix: Mapping[str, float] | None = None,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    match_budgets: bool = True,
) -> Comparison:
    """Compare two recipes of a pool.

    Args:
        pool: as read by `read_runs`.
        first: name of the recipe to compare with.
        second: name of the recipe to judge.
        estimator: of both fits.
        delta: of both fits.
        fix: values to hold in both fits, of alpha, beta or E.
        level: of the intervals, between 0 and 1.
        resamples: of the joint bootstrap.
        seed: of the draws.
        match_budgets: use only budgets at which both recipes have looped runs.

    Raises:
        UserError: the same recipe twice, no such recipe, no budget in common, phi held, or
            impossible arguments.
    """
    if first == second:
        raise UserError(f"recipe {first!r} cannot be compared with itself: name two")
    if "phi" in (fix or {}):
        raise UserError("phi is what is compared: hold alpha, beta or E, or leave --fix out")
    check_resampling(level, resamples=resamples, seed=seed)
    tables = [pool.of_recipe(name, match_budgets=match_budgets) for name in (first, second)]
    if match_budgets:
        tables = at_common_levels(*tables)
        if tables[0].empty:
            raise UserError(
                f"recipes {first!r} and {second!r} have no budget (or token count) with looped "
                "runs in common: use --no-match-budgets to compare them all the same"
            )
    fits = [fit_law(table, estimator=estimator, delta=delta, fix=fix) for table in tables]
    cells = JointCells.of(tables)
    laws = law_differences(fits, cells, level=level)
    delta_phi = low = high = jackknife = None
    failed = drawn = 0
    if fits[0].phi is not None and fits[1].phi is not None:
        delta_phi = fits[1].phi - fits[0].phi
        pair = (Fitted.of(fits[0]), Fitted.of(fits[1]))
        drawn = resamples
        phis = _bootstrap(pair, cells, resamples=resamples, seed=seed)
        failed = resamples - len(phis)
        if len(phis) >= min(MIN_RESAMPLES, resamples):
            low, high = map(float, np.quantile(phis, [0.5 - level / 2, 0.5 + level / 2]))
        jackknife = laws["plain"].differences["phi"].ends
    bootstrap = None if low is None or high is None else (low, high)
    verdict = verdict_on([bootstrap, jackknife])
    return Comparison(
        first=fits[0],
        second=fits[1],
        delta_phi=delta_phi,
        level=level,
        low=low,
        high=high,
        jackknife=jackknife,
        failed=failed,
        resamples=drawn,
        shared_cells=cells.num_shared,
        loss=loss_difference(*tables, level=level),
        verdict=verdict,
        other_estimator=_other_estimator(
            tables, cells, estimator=estimator, fix=fix, level=level, verdict=verdict
        ),
        laws=laws,
        warnings=_seeds_apart(tables, names=(first, second)),
        pair=pair_verdict(laws, plain=verdict, level=level),
    )


def _other_estimator(
    tables: list[pd.DataFrame],
    cells: JointCells,
    *,
    estimator: Estimator,
    fix: Mapping[str, float] | None,
    level: float,
    verdict: Verdict,
) -> OtherEstimator:
    """Compare by the other one, Huber's with its default delta."""
    name: Estimator = "least_squares" if estimator == "huber" else "huber"
    fits = [fit_law(table, estimator=name, fix=fix, polish=FEW_STARTS) for table in tables]
    delta_phi = plain_difference(fits, cells, level=level).differences.get("phi")
    found = verdict_on([None if delta_phi is None else delta_phi.ends])
    return OtherEstimator(
        name=name,
        delta_phi=delta_phi,
        verdict=found,
        disagrees="unknown" not in (found, verdict) and found != verdict,
    )


def _seeds_apart(tables: list[pd.DataFrame], *, names: tuple[str, str]) -> tuple[str, ...]:
    """A warning where looped runs of one recipe have seeds that the other's lack."""
    if any("seed" not in table for table in tables):
        return ()
    seeds = [set(table.loc[table["recurrences"] > 1, "seed"].dropna()) for table in tables]
    warnings = []
    for name, other, (own, theirs) in zip(names, names[::-1], (seeds, seeds[::-1]), strict=True):
        if own and theirs and own - theirs:
            listed = ", ".join(f"{seed:g}" for seed in sorted(own - theirs))
            warnings.append(
                f"{name} has looped runs of seed {listed}, {other} has none: runs of one seed see "
                "the same data in the same order and err together, so compare equal seeds"
            )
    return tuple(warnings)


def _bootstrap(
    pair: tuple[Fitted, Fitted], cells: JointCells, *, resamples: int, seed: int
) -> Floats:
    """Differences in phi of the resamples in which both fits succeeded."""
    drawn = cells.draws(resamples, seed=seed)
    found = [fitted.loop_values(weights) for fitted, weights in zip(pair, drawn, strict=True)]
    good = np.logical_and(*(told[:, 0] for _, told in found))
    return np.asarray((found[1][0] - found[0][0])[good, 0])
