"""Sizes between those that were trained."""

import numpy as np
import pytest

from looped.scaling.size_family import flops_per_token, size_families
from tests.scaling.grids import TRUTH, architecture, published, synthetic


def test_what_lies_between_is_what_a_model_of_that_size_has():
    """Against the architecture itself, at a width that was not trained."""
    runs = published("baseline")
    model = architecture(896, 4)
    groups = model.parameter_groups()
    at = np.log(groups.n_once + groups.n_rec)
    family = size_families(runs)[4]
    x = np.log(family.n_total)
    assert np.interp(at, x, family.n_rec) == pytest.approx(groups.n_rec, rel=0.01)
    assert np.interp(at, x, family.flops_per_token) == pytest.approx(
        model.flops_per_token(), rel=0.02
    )


def test_a_family_stays_within_the_runs():
    """From the smallest size to the largest of each recurrence count, ascending."""
    runs = published("baseline")
    for r, family in size_families(runs).items():
        own = runs[runs["recurrences"] == r]
        total = own["n_once"] + own["n_rec"]
        assert family.n_total[0] == pytest.approx(total.min())
        assert family.n_total[-1] == pytest.approx(total.max())
        assert (np.diff(family.n_total) > 0).all()
        np.testing.assert_allclose(family.n_once + family.n_rec, family.n_total)


def test_the_best_size_of_a_budget():
    """The minimum of a fine grid; none where it would lie outside of the sizes."""
    family = size_families(published("baseline"), points=400)[1]
    size, loss = family.best_at_budget(TRUTH, 2e18)
    losses = family.loss_at_budget(TRUTH, 2e18)
    assert loss == losses.min()
    assert family.n_total[losses.argmin()] == size
    assert family.best_at_budget(TRUTH, 1e15) is None
    assert family.best_at_budget(TRUTH, 1e24) is None


def test_flops_come_from_whichever_column_tells_them():
    """Recorded FLOPs win, else budget / tokens; nonsense counts as unknown."""
    runs = (
        synthetic()
        .head(4)
        .assign(flops_per_token=[10.0, None, -1.0, "x"], budget_flops=[None, 1e18, None, None])
    )
    found = flops_per_token(runs)
    assert found.iloc[0] == 10.0
    assert found.iloc[1] == pytest.approx(1e18 / runs["tokens"].iloc[1])
    assert found.iloc[2:].isna().all()
    assert size_families(synthetic())[2].flops_per_token is None


def test_one_size_is_no_family():
    """Between one size and itself there is nothing to draw."""
    runs = synthetic()
    one = runs[runs["width"] == 768]
    assert size_families(one) == {}
