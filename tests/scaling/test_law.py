"""The law, its derivatives, and the parametrisation in which it is fitted."""

import math

import numpy as np
import pytest

from looped.scaling.law import PHI, Design, Law
from looped.scaling.loop_terms import NESTED
from tests.scaling.grids import TRUTH, published, synthetic


def test_the_law_is_the_papers():
    """One prediction worked out with Python's own arithmetic from the formula as printed."""
    law = Law(E=1.5, A=20.0, alpha=0.2, B=800.0, beta=0.35, phi=0.5)
    by_hand = 1.5 + 20 * (2e6 + math.sqrt(4) * 5e6) ** -0.2 + 800 * 3e8**-0.35
    assert law.loss(4, 2e6, n_rec=5e6, tokens=3e8) == pytest.approx(by_hand, rel=1e-14)
    assert law.effective_size(4, 2e6, n_rec=5e6) == 12e6


def test_theta_and_law_are_two_names_of_one_thing():
    """Changing to the fitted parametrisation and back loses nothing, predictions included."""
    table = published("baseline")
    design = Design.of_runs(table)
    theta = design.to_theta(TRUTH)
    back = design.to_law(theta)
    for name in ("E", "A", "alpha", "B", "beta", "phi"):
        assert getattr(back, name) == pytest.approx(getattr(TRUTH, name), rel=1e-12)
    predicted = TRUTH.loss(
        table["recurrences"], table["n_once"], n_rec=table["n_rec"], tokens=table["tokens"]
    )
    np.testing.assert_allclose(np.exp(design.log_prediction(theta)), predicted, rtol=1e-13)


@pytest.mark.parametrize("form", ["plain", *NESTED])
def test_the_jacobian_is_the_derivative(form):
    """Analytic against complex-step derivatives, which have no truncation error to hide behind."""
    design = Design.of_runs(synthetic(), form=form)
    theta = np.array([0.4, -0.5, -0.8, 0.23, 0.41, 0.3, 0.5, -0.1])[: len(design.names)]
    _, jacobian = design.log_prediction_and_jacobian(theta)
    for column in range(len(theta)):
        nudged = theta.astype(complex)
        nudged[column] += 1e-30j
        by_step = design.log_prediction(nudged).imag / 1e-30
        np.testing.assert_allclose(jacobian[:, column], by_step, rtol=1e-12, atol=1e-15)


def test_many_thetas_at_once_are_each_alone():
    """A stack of parameters gives the stack of predictions and Jacobians."""
    design = Design.of_runs(synthetic())
    thetas = design.to_theta(TRUTH) + 0.1 * np.arange(12).reshape(2, 6)
    stacked, jacobians = design.log_prediction_and_jacobian(thetas)
    for i, theta in enumerate(thetas):
        alone, jacobian = design.log_prediction_and_jacobian(theta)
        np.testing.assert_array_equal(stacked[i], alone)
        np.testing.assert_allclose(jacobians[i], jacobian, rtol=1e-14)


def test_every_form_is_the_formula_it_stands_for():
    """Each loop term written out run by run with Python's own arithmetic."""
    table = synthetic(recurrences=(1, 4, 8), budgets=(1e18,), widths=(512, 768))
    formulas = {
        "plain": ([0.4], lambda once, rec, r: (once + r**0.4 * rec, 0)),
        "gains": ([0.3, 0.6], lambda o, n, r: (o + {1: 1, 4: 4**0.3, 8: 8**0.6}[r] * n, 0)),
        "offset": ([0.4, 0.02], lambda o, n, r: (o + r**0.4 * n, 0.02 if r > 1 else 0)),
        "gain_offset": (
            [0.4, -0.2],
            lambda o, n, r: ((o + r**0.4 * n) * (math.exp(-0.2) if r > 1 else 1), 0),
        ),
    }
    for form, (values, formula) in formulas.items():
        design = Design.of_runs(table, form=form)
        theta = np.concatenate([design.to_theta(TRUTH)[:PHI], values])
        by_hand = []
        for run in table.itertuples():
            size, offset = formula(run.n_once, run.n_rec, run.recurrences)
            loss = TRUTH.E + TRUTH.A * size**-TRUTH.alpha + TRUTH.B * run.tokens**-TRUTH.beta
            by_hand.append(math.log(loss) + offset)
        np.testing.assert_allclose(design.log_prediction(theta), by_hand, rtol=1e-13)
