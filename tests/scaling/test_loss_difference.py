"""The difference of the best losses, against SciPy's t test and a linear model."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from looped.scaling.loss_difference import loss_difference


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
    values = [-0.03, -0.01, 0.02, -0.05]
    tables = apart_by({(f"{c}e18", 4): v for c, v in zip((1, 2, 4, 8), values, strict=True)})
    found = loss_difference(*tables, level=0.9)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert found.value == pytest.approx(np.mean(values))
    assert found.ends == pytest.approx((expected.low, expected.high))
    assert (found.at, found.num_cells) == ("budget", 4)


def test_every_count_may_have_a_difference_of_its_own():
    """A linear model with a mean for each count: between counts they may differ without error."""
    differences = {
        ("1e18", 2): -0.01,
        ("2e18", 2): -0.014,
        ("4e18", 2): -0.009,
        ("1e18", 4): -0.05,
        ("2e18", 4): -0.053,
        ("2e18", 8): -0.1,
    }
    y = np.array(list(differences.values()))
    design = np.array([[r == count for count in (2, 4, 8)] for _, r in differences], dtype=float)
    means, (squares,), *_ = np.linalg.lstsq(design, y, rcond=None)
    weights = design.mean(axis=0)
    error = np.sqrt(squares / 3 * weights @ np.linalg.inv(design.T @ design) @ weights)
    reach = stats.t.ppf(0.975, 3) * error
    found = loss_difference(*apart_by(differences), level=0.95)
    assert found.ends == pytest.approx((y.mean() - reach, y.mean() + reach))
    assert list(found.by_recurrence.values()) == pytest.approx(list(means))


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
