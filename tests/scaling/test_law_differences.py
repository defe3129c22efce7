"""What moved between two recipes, law by law, with errors drawn once."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from looped.scaling import fit_law
from looped.scaling.joint_cells import JointCells
from looped.scaling.law_differences import law_differences
from looped.scaling.nested import fit_nested
from tests.scaling.grids import published, synthetic


@pytest.fixture(scope="module")
def tables():
    """The published recipes on the two budgets in the middle, plain runs in common."""
    budgets = [1e18, 2.15e18, 4.64e18]
    return [
        table[table["budget_flops"].isin(budgets)]
        for table in (published("baseline"), published("truncated"))
    ]


def fits_of(tables):
    return [fit_law(table, estimator="least_squares", polish=2) for table in tables]


def test_the_joint_jackknife_leaves_each_cell_out_of_both(tables):
    """From scratch without one cell each: errors of delta phi and delta offset, and both tests."""
    fits, cells = fits_of(tables), JointCells.of(tables)
    found = law_differences(fits, cells, level=0.9)["offset"]
    moved, both = [], []
    for weights in zip(*cells.without_each(), strict=True):
        without = fits_of([t[w > 0] for t, w in zip(tables, weights, strict=True)])
        values = [list(fit_nested(fit, "offset").values.values()) for fit in without]
        moved.append(np.subtract(values[1], values[0]))
        both.append([values[0][1], values[1][1]])
    count = len(cells)

    def covariance(values):
        centred = np.array(values) - np.mean(values, axis=0)
        return (count - 1) / count * centred.T @ centred

    def hotelling(values, cov):
        t_squared = values @ np.linalg.solve(cov, values)
        return stats.f.sf(t_squared * (count - 2) / (2 * (count - 1)), 2, count - 2)

    laws = [fit_nested(fit, "offset") for fit in fits]
    values = np.array([list(law.values.values()) for law in laws])
    errors = np.sqrt(np.diag(covariance(moved)))
    for i, name in enumerate(("phi", "offset")):
        difference = found.differences[name]
        assert difference.value == pytest.approx(values[1, i] - values[0, i], rel=1e-6)
        assert difference.stderr == pytest.approx(errors[i], rel=5e-3)
        own = stats.t.ppf(0.95, count - 1) * difference.stderr
        together = stats.t.ppf(0.975, count - 1) * difference.stderr
        assert difference.ends == pytest.approx((difference.value - own, difference.value + own))
        assert difference.simultaneous == pytest.approx(
            (difference.value - together, difference.value + together)
        )
    unmoved = hotelling(values[1] - values[0], covariance(moved))
    assert found.p_cells == pytest.approx(unmoved, rel=0.05)
    plain = hotelling(values[:, 1], covariance(both))
    assert found.p_cells_plain == pytest.approx(plain, rel=0.05)


def test_the_likelihood_ratios_of_both_recipes_add_up(tables):
    """F from the sums over the recipes; AICc likewise."""
    fits = fits_of(tables)
    found = law_differences(fits, JointCells.of(tables), level=0.95)
    laws = [fit_nested(fit, "gains") for fit in fits]
    ratio = np.mean([law.statistic for law in laws])  # both gain two exponents
    freedom = sum(fit.num_runs - 8 for fit in fits)
    assert found["gains"].p == pytest.approx(stats.f.sf(ratio, 4, freedom))
    assert found["gains"].delta_aicc == pytest.approx(sum(law.delta_aicc for law in laws))
    assert (found["plain"].p, found["plain"].delta_aicc) == (None, None)


def test_what_one_recipe_cannot_tell_has_no_difference():
    """A single recurrence count above 1 in the second: no offset, but the worth of that count."""
    first = synthetic(noise=0.003)
    second = first[first["recurrences"].isin((1, 4))]
    tables = [
        first,
        pd.concat(
            [
                second[second["recurrences"] == 1],
                second[second["recurrences"] == 4].rename(index=lambda i: i + 1000),
            ]
        ),
    ]
    found = law_differences(fits_of(tables), JointCells.of(tables), level=0.95)
    assert found["offset"].differences == {}
    assert "a single recurrence count above 1" in found["offset"].faults[0]
    assert list(found["gains"].differences) == ["phi_4"]
    assert found["plain"].differences["phi"].ends is not None
