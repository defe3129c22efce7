"""The greedy exchange against trying every choice."""

import itertools

import numpy as np
import pytest

from looped.errors import UserError
from looped.scaling.exchange import Candidates, choose, next_run, phi_variance
from looped.scaling.expected_error import derivatives, expected_error
from looped.scaling.prior import PUBLISHED
from looped.scaling.published import published_runs


@pytest.fixture(scope="module")
def table():
    runs = published_runs().of_recipe("baseline")
    few = runs[runs["recurrences"].isin([1, 8]) & runs["width"].isin([384, 640, 1152])]
    return few.reset_index(drop=True)


@pytest.fixture(scope="module")
def candidates(table):
    return Candidates(
        information=derivatives(table, PUBLISHED) / PUBLISHED.noise,
        cost=table["budget_flops"].to_numpy(dtype=float),
        group=table["recurrences"].to_numpy(),
    )


def _variance(rows):
    """(M^-1)_phi,phi by an inverse of its own scaling; infinity where M is singular."""
    scale = np.linalg.norm(rows, axis=0)
    m = (rows / scale).T @ (rows / scale)
    if np.linalg.cond(m) > 1e12:
        return np.inf
    return np.linalg.inv(m)[-1, -1] / scale[-1] ** 2


@pytest.mark.parametrize("budget", [1.2e19, 2.5e19, 1e21])
def test_the_best_of_all_choices(candidates, budget):
    """Of every choice of 8 from 18 within the budget none is better by more than a hundredth."""
    assert len(candidates) == 18
    every = np.array(list(itertools.combinations(range(len(candidates)), 8)))
    affordable = every[candidates.cost[every].sum(axis=1) <= budget]
    rows = candidates.information / np.linalg.norm(candidates.information, axis=0)
    m = rows[affordable].transpose(0, 2, 1) @ rows[affordable]
    m = m[np.linalg.cond(m) < 1e12]
    best = np.linalg.inv(m)[:, -1, -1].min() / (candidates.information[:, -1] ** 2).sum()
    found = choose(candidates, 8, budget=budget)
    assert candidates.cost[found].sum() <= budget
    assert len(set(found)) == 8
    assert _variance(candidates.information[found]) == pytest.approx(best, rel=0.02)
    assert phi_variance(candidates, found) == pytest.approx(
        _variance(candidates.information[found]), rel=1e-3
    )


def test_the_variance_is_that_of_the_plan(candidates, table):
    """Exchange and plan must speak of the same error."""
    found = choose(candidates, 10, budget=1e21)
    stderr = expected_error(table.iloc[found], PUBLISHED).phi_stderr
    assert phi_variance(candidates, found) ** 0.5 == pytest.approx(stderr, rel=1e-3)


def test_at_least_so_many_of_each(candidates):
    """Without it nothing would keep the recurrence counts in the design."""
    found = choose(candidates, 9, budget=1e21, at_least=4)
    counts = np.unique(candidates.group[found], return_counts=True)[1]
    assert counts.min() >= 4


def test_the_next_run_is_the_one_that_helps_most(candidates):
    """Rank-one changes against full inverses, for every candidate."""
    found = choose(candidates, 8, budget=2e19)
    rest = [k for k in range(len(candidates)) if k not in found and candidates.cost[k] <= 5e18]
    best = min(rest, key=lambda k: _variance(candidates.information[[*found, k]]))
    assert next_run(candidates, found, largest_cost=5e18) == best
    assert next_run(candidates, found, largest_cost=1.0) is None


@pytest.mark.parametrize(
    ("num_runs", "budget", "at_least", "words"),
    [
        (8, 1e18, 0, "--runs 8 cost at least"),
        (99, 1e25, 0, "more than the 18 candidates"),
        (5, 1e25, 3, "fewer than 3 of each of the 2"),
        (18, 1e25, 10, "fewer than 10 of each"),
        (30, 1e25, 10, "only 9 candidates have r = 1"),
    ],
)
def test_impossible_wishes(candidates, num_runs, budget, at_least, words):
    with pytest.raises(UserError) as caught:
        choose(candidates, num_runs, budget=budget, at_least=at_least)
    assert words in str(caught.value)
