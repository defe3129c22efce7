"""The parts of the loss gap: they add up, and are what made the data."""

import numpy as np
import pytest

from looped.scaling import fit_law
from looped.scaling.loss_gap import PARTS, loss_gap
from looped.scaling.nested import fit_nested
from tests.scaling.grids import TRUTH, published, synthetic


def test_the_parts_are_those_that_made_the_data():
    """Exact runs of the law with an offset of 0.03: each part from the formulas, by hand."""
    table = synthetic()
    looped = table["recurrences"] > 1
    without = table["loss"].to_numpy()
    table["loss"] = without * np.exp(0.03 * looped)
    gap = loss_gap(fit_nested(fit_law(table, estimator="least_squares"), "offset"))
    assert list(gap) == [2, 4, 8]
    for r, parts in gap.items():
        own = (table["recurrences"] == r).to_numpy()
        runs = table[own]
        plain = TRUTH.loss_of_size(runs["n_once"] + r * runs["n_rec"], runs["tokens"])
        assert parts.num_runs == 24
        assert parts.gap == pytest.approx((runs["loss"] - plain).mean(), rel=1e-4)
        assert parts.per_recurrence == pytest.approx((without[own] - plain).mean(), rel=1e-3)
        by_offset = (without[own] * (np.exp(0.03) - 1)).mean()
        assert parts.being_looped == pytest.approx(by_offset, rel=1e-3)
        assert parts.rest == pytest.approx(0, abs=1e-6)


def test_published_truncation_pays_for_being_looped():
    """Parts add up to the gap, shares to 1; most of the truncated gap at r = 2 is the offset."""
    gaps = {
        name: loss_gap(fit_nested(fit_law(published(name)), "offset"))
        for name in ("baseline", "truncated")
    }
    for gap in gaps.values():
        for parts in gap.values():
            assert sum(getattr(parts, name) for name in PARTS) == pytest.approx(parts.gap)
            assert sum(parts.shares.values()) == pytest.approx(1)
    assert gaps["truncated"][2].shares["being_looped"] > 0.6
    assert gaps["baseline"][2].shares["being_looped"] < 0.2


def test_no_gap_no_shares():
    """Looped runs that beat the plain model of their depth have no gap to share out."""
    table = synthetic()
    table["loss"] *= np.where(table["recurrences"] > 1, 0.9, 1.0)
    gap = loss_gap(fit_nested(fit_law(table, estimator="least_squares"), "offset"))
    assert all(parts.gap < 0 and parts.shares is None for parts in gap.values())
    single = fit_law(synthetic(noise=0.003, recurrences=(1, 4)))
    assert loss_gap(fit_nested(single, "offset")) == {}
