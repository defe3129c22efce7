"""Which runs tell phi best for a total budget: greedy exchange over candidate runs.

Chosen are n distinct candidates whose cost stays within the budget and whose information matrix M
minimises (M^-1)_phi,phi. Every run of the choice is tried against every candidate outside; the best
swap is made, until none improves (Fedorov 1972). Swapping is a rank-one change of V = M^-1:

    (V - V j j' V / (1 + j' V j))_pp = V_pp - (V j)_p^2 / (1 + j' V j)

so that a whole sweep over the candidates costs one product. An exchange under a budget can end in a
choice that no single swap improves; it is begun from several, and the best is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from looped.errors import UserError
from looped.scaling.law import PHI, Floats

RIDGE = 1e-9
"""Added to the information matrix of columns of unit length, so that a choice of too few runs has
an inverse; far below the information of any run that matters."""

NUM_STARTS = 16
LEAST_GAIN = 1e-9


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The runs to choose from: m of them.

    Attributes:
        information: J / sigma, derivatives of the loss over its noise; shape (m, 6).
        cost: training FLOPs; shape (m,).
        group: recurrence count of each; shape (m,).
    """

    information: Floats
    cost: Floats
    group: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.cost)

    @property
    def scaled(self) -> Floats:
        """Columns of unit length, phi's left as it is: its variance keeps its unit."""
        scale = np.linalg.norm(self.information, axis=0)
        scale[PHI] = 1.0
        return np.asarray(self.information / scale)


def choose(
    candidates: Candidates,
    num_runs: int,
    *,
    budget: float,
    at_least: int = 0,
    seed: int = 0,
) -> list[int]:
    """The candidates with the smallest expected standard error of phi that the search finds.

    Args:
        candidates: to choose from.
        num_runs: how many to choose.
        budget: training FLOPs of all chosen together.
        at_least: runs of each recurrence count that must be among them.
        seed: of the random starts.

    Returns:
        Indices of the candidates, ascending.

    Raises:
        UserError: too few candidates, or even the cheapest choice exceeds the budget.
    """
    cheapest = _cheapest(candidates, num_runs, at_least=at_least)
    least = float(candidates.cost[cheapest].sum())
    if least > budget:
        raise UserError(
            f"--runs {num_runs} cost at least {least:.3g} FLOPs here, above --budget {budget:.3g}: "
            "take fewer runs, more budget or smaller candidates"
        )
    rng = np.random.default_rng(seed)
    best, best_variance = cheapest, np.inf
    for start in range(NUM_STARTS):
        chosen = cheapest if start == 0 else _random_start(candidates, cheapest, budget, rng=rng)
        chosen = _exchange(candidates, chosen, budget=budget, at_least=at_least)
        variance = phi_variance(candidates, chosen)
        if variance < best_variance:
            best, best_variance = chosen, variance
    return sorted(best)


def phi_variance(candidates: Candidates, chosen: Sequence[int]) -> float:
    """Expected variance of phi of a choice."""
    return float(_covariance(candidates.scaled[list(chosen)])[PHI, PHI])


def next_run(candidates: Candidates, chosen: Sequence[int], *, largest_cost: float) -> int | None:
    """The one further run that lowers the variance of phi most; null when none is affordable.

    Args:
        candidates: to choose from.
        chosen: the runs that are there.
        largest_cost: of the further run, training FLOPs.
    """
    allowed = candidates.cost <= largest_cost
    allowed[list(chosen)] = False
    if not allowed.any():
        return None
    j = candidates.scaled
    variance = _variance_with(_covariance(j[list(chosen)]), j)
    return int(np.argmin(np.where(allowed, variance, np.inf)))


def _covariance(rows: Floats) -> Floats:
    information = rows.T @ rows
    ridge = np.full(len(information), RIDGE)
    ridge[PHI] *= max(information[PHI, PHI], 1.0)
    return np.asarray(np.linalg.inv(information + np.diag(ridge)))


def _variance_with(covariance: Floats, rows: Floats) -> Floats:
    """Variance of phi after adding each of these rows alone; shape (m,)."""
    moved = rows @ covariance
    gain = moved[:, PHI] ** 2 / (1 + (moved * rows).sum(axis=1))
    return np.asarray(covariance[PHI, PHI] - gain)


def _exchange(
    candidates: Candidates, chosen: list[int], *, budget: float, at_least: int
) -> list[int]:
    j, cost, group = candidates.scaled, candidates.cost, candidates.group
    chosen = list(chosen)
    current = phi_variance(candidates, chosen)
    while True:
        spent = float(cost[chosen].sum())
        best: tuple[float, int, int] | None = None
        for place, leaving in enumerate(chosen):
            rest = chosen[:place] + chosen[place + 1 :]
            allowed = cost <= budget - spent + cost[leaving]
            allowed[chosen] = False
            if at_least and (group[rest] == group[leaving]).sum() < at_least:
                allowed &= group == group[leaving]
            if not allowed.any():
                continue
            variance = np.where(allowed, _variance_with(_covariance(j[rest]), j), np.inf)
            entering = int(np.argmin(variance))
            if best is None or variance[entering] < best[0]:
                best = (float(variance[entering]), place, entering)
        if best is None or best[0] >= current * (1 - LEAST_GAIN):
            return chosen
        current = best[0]
        chosen[best[1]] = best[2]


def _cheapest(candidates: Candidates, num_runs: int, *, at_least: int) -> list[int]:
    order = np.argsort(candidates.cost, kind="stable")
    groups = sorted(set(candidates.group.tolist()))
    if at_least * len(groups) > num_runs:
        raise UserError(
            f"--runs {num_runs} are fewer than {at_least} of each of the {len(groups)} recurrence "
            "counts: take more runs, or lower --at_least"
        )
    chosen: list[int] = []
    for group in groups:
        own = [int(i) for i in order if candidates.group[i] == group]
        if len(own) < at_least:
            raise UserError(f"only {len(own)} candidates have r = {group}: offer more widths")
        chosen += own[:at_least]
    chosen += [int(i) for i in order if i not in set(chosen)][: num_runs - len(chosen)]
    if len(chosen) < num_runs:
        raise UserError(
            f"--runs {num_runs} are more than the {len(candidates)} candidates: offer more widths "
            "or budgets"
        )
    return chosen


def _random_start(
    candidates: Candidates, cheapest: list[int], budget: float, *, rng: np.random.Generator
) -> list[int]:
    """The cheapest choice with runs swapped at random within their recurrence count."""
    chosen = list(cheapest)
    spent = float(candidates.cost[chosen].sum())
    for place in rng.permutation(len(chosen)):
        leaving = chosen[place]
        free = candidates.group == candidates.group[leaving]
        free &= candidates.cost <= budget - spent + candidates.cost[leaving]
        free[chosen] = False
        if free.any():
            entering = int(rng.choice(np.flatnonzero(free)))
            spent += float(candidates.cost[entering] - candidates.cost[leaving])
            chosen[place] = entering
    return chosen
