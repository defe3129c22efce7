"""The difference of the best losses, against SciPy's t test and simulation."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from looped.scaling.loss_difference import loss_difference
from looped.scaling.published import published_runs


def cells(losses: dict[tuple[str, int], float]) -> pd.DataFrame:
    """One run for each cell, whose loss is the cell's best."""
    rows = [
        {"level": level, "recurrences": r, "n_once": 1e6, "n_rec": 1e6, "loss": loss}
        for (level, r), loss in losses.items()
    ]
    return pd.DataFrame(rows)


def apart_by(differences: dict[tuple[str, int], float]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two tables of runs whose cells differ by so much."""
    first = {cell: 3.0 + 0.1 * number for number, cell in enumerate(differences)}
    second = {cell: first[cell] + differences[cell] for cell in differences}
    return cells(first), cells(second)


def test_one_recurrence_count_is_a_t_test():
    """Small budgets come first in what is told of each."""
    values = {"8e18 FLOPs": -0.05, "1e18 FLOPs": -0.03, "2e18 FLOPs": -0.01, "1e19 FLOPs": 0.02}
    found = loss_difference(*apart_by({(c, 4): v for c, v in values.items()}), level=0.9)
    expected = stats.ttest_1samp(list(values.values()), 0).confidence_interval(0.9)
    assert found.value == pytest.approx(np.mean(list(values.values())))
    assert found.ends == pytest.approx((expected.low, expected.high))
    assert list(found.by_level) == ["1e18 FLOPs", "2e18 FLOPs", "8e18 FLOPs", "1e19 FLOPs"]
    assert (found.at, found.by_level["1e18 FLOPs"]) == ("budget", pytest.approx(-0.03))


def test_cells_of_one_budget_are_one_observation():
    """The published truncation: a t test of the means of its budgets, which drift together."""
    tables = [published_runs().of_recipe(name) for name in ("baseline", "truncated")]
    common = set(tables[1].loc[tables[1]["recurrences"] > 1, "level"])
    found = loss_difference(*(t[t["level"].isin(common)] for t in tables), level=0.95)
    means = list(found.by_level.values())
    assert len(means) == 4
    assert means == sorted(means)  # the advantage shrinks with every budget
    expected = stats.ttest_1samp(means, 0).confidence_interval(0.95)
    assert found.ends == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("common", [0.0, 0.01])
def test_the_interval_holds_as_often_as_it_says(common):
    """With an error that all cells of a budget share it would be too narrow by cells: 20 % missed.

    Each recurrence count has a difference of its own, which is none of the error.
    """
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(200):
        differences = {
            (f"{budget}e18 FLOPs", r): 0.01 * r + shared + rng.normal(0, 0.005)
            for budget, shared in enumerate(rng.normal(0, common, 4), start=1)
            for r in (2, 4, 8)
        }
        low, high = loss_difference(*apart_by(differences), level=0.95).ends
        missed += not low <= 0.01 * 14 / 3 <= high
    assert missed <= 20  # ten expected; binomial, above it 1 in 700


def test_more_seeds_do_not_make_a_better_loss():
    """The lowest of several runs of one size is lower by chance: their mean counts."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(100):
        once = cells({("1e18 FLOPs", 4): 3.0 + rng.normal(0, 0.01)})
        often = pd.concat(cells({("1e18 FLOPs", 4): 3.0 + rng.normal(0, 0.01)}) for _ in range(4))
        found.append(loss_difference(often, once, level=0.95).value)
    assert np.mean(found) == pytest.approx(0.0, abs=0.003)  # by the lowest of four: 0.0103


def test_a_minimum_is_not_compared_with_a_run():
    """Where one recipe has no minimum inside its widths, the lowest losses of both are taken."""
    sizes = np.array([1e6, 2e6, 4e6])
    curved = pd.DataFrame(
        {
            "level": "1e18 FLOPs",
            "recurrences": 4,
            "n_once": sizes,
            "n_rec": sizes,
            "loss": [3.1, 3.0, 3.05],
        }
    )
    falling = curved.assign(loss=[3.1, 3.05, 2.9])
    shifted = curved.assign(loss=curved["loss"] - 0.02)
    assert loss_difference(curved, falling, level=0.95).value == pytest.approx(-0.1)
    assert loss_difference(curved, shifted, level=0.95).value == pytest.approx(-0.02)


def test_one_budget_has_no_interval():
    """Nothing tells its scatter: two counts may well differ."""
    found = loss_difference(*apart_by({("1e18", 4): -0.1, ("1e18", 8): -0.2}), level=0.95)
    assert found.value == pytest.approx(-0.15)
    assert found.ends is None


def test_without_a_common_cell_there_is_nothing_to_say():
    """Nor where plain runs alone are common: they belong to both."""
    first = cells({("1e18", 1): 3.0, ("1e18", 4): 3.1})
    second = cells({("1e18", 1): 3.0, ("2e18", 4): 3.1})
    assert loss_difference(first, second, level=0.95) is None
