"""Equivalent sizes and allocations, against the exact counts and a brute-force search."""

import numpy as np
import pytest

from looped.architecture import Architecture
from looped.errors import UserError
from looped.scaling.equivalence import Layout, allocate, equivalent
from tests.scaling.grids import TRUTH, architecture

LOOPED = Layout(recurrences=4)


@pytest.mark.parametrize("recurrences", [1, 2, 4, 8])
def test_the_quadratics_are_the_exact_counts(recurrences):
    """At a real width the continuous layout has exactly the parameters and FLOPs of the model."""
    layout = Layout(recurrences=recurrences)
    model = architecture(1408, recurrences)
    groups = model.parameter_groups()
    assert layout.n_once(1408) == pytest.approx(groups.n_once, rel=1e-12)
    assert layout.n_rec(1408) == pytest.approx(groups.n_rec, rel=1e-12)
    assert layout.flops_per_token(1408) == pytest.approx(model.flops_per_token(), rel=1e-12)
    assert layout.width_of_size(groups.n_once + groups.n_rec) == pytest.approx(1408)
    assert layout.width_of_flops(model.flops_per_token()) == pytest.approx(1408)


def test_the_headline_example():
    """410M at r = 4 in 2-16-2: about 580M of equal loss and about 1B of equal cost."""
    found = equivalent(LOOPED, 410e6, phi=0.46)
    assert found.n_once + found.n_rec == pytest.approx(410e6)
    assert found.equal_loss == pytest.approx(580e6, rel=0.03)
    assert found.equal_cost == pytest.approx(1e9, rel=0.05)


def test_the_plain_model_of_equal_cost_costs_the_same():
    """Rounded to a real width, the plain model's FLOPs are those of the looped one."""
    found = equivalent(LOOPED, 410e6, phi=0.46)
    plain = Layout()
    model = Architecture(
        width=2 * round(plain.width_of_size(found.equal_cost) / 2),
        num_heads=1,
        recurrent_layers=16,
        recurrences=1,
    )
    assert model.flops_per_token() == pytest.approx(found.flops_per_token, rel=2e-3)


def test_the_ends_of_phi():
    """At phi = 0 worth its unique parameters, at phi = 1 the unrolled depth; at r = 1 itself."""
    nothing, everything = (equivalent(LOOPED, 410e6, phi=phi) for phi in (0.0, 1.0))
    assert nothing.equal_loss == pytest.approx(410e6)
    assert everything.equal_loss == pytest.approx(everything.n_once + 4 * everything.n_rec)
    plain = equivalent(Layout(), 410e6, phi=0.46)
    assert plain.equal_loss == pytest.approx(410e6)
    assert plain.equal_cost == pytest.approx(410e6)


def test_truncation_is_cheaper():
    """Half the recurrences without gradient cost less, so the plain model of equal cost shrinks."""
    truncated = Layout(recurrences=4, truncation_depth=2)
    cheap, full = (equivalent(layout, 410e6, phi=0.4) for layout in (truncated, LOOPED))
    assert cheap.equal_cost < 0.9 * full.equal_cost
    assert cheap.equal_loss == full.equal_loss


@pytest.mark.parametrize("budget", [1e18, 1e20])
def test_the_allocation_is_the_lowest_loss_of_a_search(budget):
    """No width of a fine grid beats it, and it spends the budget."""
    best = allocate(TRUTH, LOOPED, budget=budget)
    losses = []
    for width in np.geomspace(best.width / 2, best.width * 2, 401):
        tokens = budget / LOOPED.flops_per_token(width)
        losses.append(TRUTH.loss(4, LOOPED.n_once(width), n_rec=LOOPED.n_rec(width), tokens=tokens))
    assert best.loss <= min(losses) + 1e-12
    assert best.loss == pytest.approx(min(losses), abs=1e-6)
    assert best.tokens * LOOPED.flops_per_token(best.width) == pytest.approx(budget)
    assert best.n_total == pytest.approx(LOOPED.n_total(best.width))


def test_mistakes_are_named():
    """Depths that do not divide, sizes and budgets that no model has."""
    with pytest.raises(UserError, match="16 looped layers cannot be 3 passes"):
        Layout(recurrences=3)
    with pytest.raises(UserError, match="16 looped layers cannot be 0 passes"):
        Layout(recurrences=0)
    with pytest.raises(UserError, match="truncation_depth 5 is above recurrences 4"):
        Layout(recurrences=4, truncation_depth=5)
    with pytest.raises(UserError, match="no model of this layout has 1 parameters"):
        equivalent(LOOPED, 1.0, phi=0.5)
    with pytest.raises(UserError, match="budget 0 is not positive"):
        allocate(TRUTH, LOOPED, budget=0.0)
    with pytest.raises(UserError, match="no best width"):
        allocate(TRUTH, LOOPED, budget=1.0)
