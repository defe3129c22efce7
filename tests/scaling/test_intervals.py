"""Intervals for phi, each held to a second way of computing it."""

import numpy as np
import pytest
from scipy import stats

from looped.errors import UserError
from looped.scaling import fit_law, phi_intervals
from looped.scaling.fitted import Fitted
from looped.scaling.intervals import KINDS
from looped.scaling.law import PHI
from looped.scaling.resampling import bootstrap_cells, wild_cells
from tests.scaling.grids import published, synthetic


@pytest.fixture(scope="module")
def squares():
    return fit_law(published("baseline"), estimator="least_squares")


@pytest.fixture(scope="module")
def huber():
    return fit_law(published("baseline"))


def test_the_cluster_robust_error_is_the_sandwich(squares):
    """Written out with loops over runs and cells, as Liang and Zeger print it."""
    _, jacobian = squares.design.log_prediction_and_jacobian(squares.optimum.theta)
    bread = np.linalg.inv(jacobian.T @ jacobian)
    meat = np.zeros((6, 6))
    for cell in range(24):
        score = np.zeros(6)
        for run in np.flatnonzero(squares.cells == cell):
            score += squares.residuals[run] * jacobian[run]
        meat += np.outer(score, score)
    covariance = 24 / 23 * 115 / 110 * bread @ meat @ bread
    assert squares.stderr == pytest.approx(np.sqrt(covariance[PHI, PHI]), rel=1e-6)
    interval = phi_intervals(squares, ["cluster"]).intervals["cluster"]
    reach = stats.t.ppf(0.975, 24 - 6) * squares.stderr
    assert interval.low == pytest.approx(squares.phi - reach)
    assert interval.high == pytest.approx(squares.phi + reach)


@pytest.mark.parametrize("estimator", ["huber", "least_squares"])
def test_the_jackknife_leaves_out_each_cell(estimator):
    """24 fits by lmfit, each without one cell, give the same error."""
    table = published("baseline")
    fit = fit_law(table, estimator=estimator)
    phis = np.array(
        [fit_law(table[fit.cells != cell], estimator=estimator, polish=2).phi for cell in range(24)]
    )
    error = np.sqrt(23 / 24 * ((phis - phis.mean()) ** 2).sum())
    interval = phi_intervals(fit, ["jackknife"]).intervals["jackknife"]
    assert interval.stderr == pytest.approx(error, rel=1e-3)
    assert interval.high - interval.low == pytest.approx(
        2 * stats.t.ppf(0.975, 23) * error, rel=1e-3
    )


def test_the_profile_is_lmfits_under_least_squares(squares):
    """What lmfit calls conf_interval, on its own minimiser, ends where our profile ends."""
    import lmfit

    design = squares.design
    parameters = lmfit.Parameters()
    for name, value in zip(design.names, squares.optimum.theta, strict=True):
        parameters.add(name, value=value)

    def residuals(values):
        theta = np.array([values[name].value for name in design.names])
        return design.log_prediction(theta) - design.log_loss

    minimiser = lmfit.Minimizer(residuals, parameters)
    ends = lmfit.conf_interval(
        minimiser, minimiser.minimize(method="leastsq"), p_names=["phi"], sigmas=[0.95]
    )["phi"]
    interval = phi_intervals(squares, ["profile"]).intervals["profile"]
    # lmfit's F test has its threshold in the ratio of sums of squares, ours in their difference.
    assert interval.low == pytest.approx(ends[0][1], abs=5e-4)
    assert interval.high == pytest.approx(ends[-1][1], abs=5e-4)


def test_the_same_seed_gives_the_same_interval(huber):
    """An interval that cannot be reproduced cannot be reported."""
    kinds = ["percentile", "studentised", "wild"]
    first = phi_intervals(huber, kinds, resamples=200, seed=4)
    again = phi_intervals(huber, kinds, resamples=200, seed=4)
    other = phi_intervals(huber, kinds, resamples=200, seed=5)
    assert first.intervals == again.intervals
    for kind in kinds:
        assert first.intervals[kind].low != other.intervals[kind].low


def test_every_kind_holds_the_estimate_and_widens_with_the_level(huber):
    """A sign error in one end, or a level that is not used, would show here."""
    narrow = phi_intervals(huber, KINDS, level=0.5, resamples=300).intervals
    wide = phi_intervals(huber, KINDS, level=0.95, resamples=300).intervals
    for kind in KINDS:
        assert wide[kind].low < narrow[kind].low < huber.phi < narrow[kind].high < wide[kind].high


def test_the_bootstrap_spread_is_the_cluster_error(squares):
    """Two roads to one standard error: refitting resampled cells, and the sandwich."""
    resampled = bootstrap_cells(Fitted.of(squares), resamples=1000)
    assert resampled.failed == 0
    assert resampled.phi.std() == pytest.approx(squares.stderr, rel=0.25)
    assert wild_cells(Fitted.of(squares), resamples=1000).phi.std() == pytest.approx(
        squares.stderr, rel=0.25
    )


def test_resamples_that_cannot_tell_phi_fail():
    """Of 7 cells one is plain: (6/7)^7 = 34 % of the resamples lack it.

    They would stay where they started, at the estimate, and make the interval too narrow; so would
    the jackknife's fit without that cell.
    """
    table = synthetic(noise=0.005, seed=1, recurrences=(1, 4))
    table = table[(table["recurrences"] == 4) | (table["level"] == "1e+19 FLOPs")]
    fit = fit_law(table)
    assert fit.num_cells == 7
    found = phi_intervals(fit, ["percentile", "jackknife"], resamples=400).intervals
    assert found["percentile"].resamples == 400
    assert found["percentile"].failed == pytest.approx(400 * (6 / 7) ** 7, abs=40)
    assert found["jackknife"].low is None
    assert found["jackknife"].why_none == "without one of the cells phi cannot be told"


def test_few_cells_leave_only_what_they_can_carry():
    """4 cells for 6 parameters: no sandwich, whose residuals vanish, but still a jackknife."""
    table = synthetic(noise=0.005, budgets=(1e18, 1e19), recurrences=(1, 4))
    fit = fit_law(table)
    assert fit.num_cells == 4
    assert fit.stderr is None
    found = phi_intervals(fit, ["cluster", "jackknife"]).intervals
    assert (found["cluster"].low, found["cluster"].stderr) == (None, None)
    assert found["cluster"].why_none == "4 cells for 6 parameters"
    assert found["jackknife"].freedom == 3
    assert found["jackknife"].low < fit.phi < found["jackknife"].high


def test_without_phi_there_is_no_interval():
    """A fit that cannot tell phi, or was told it, gives null ends and says which."""
    untold = fit_law(synthetic(recurrences=(4,)))
    held = fit_law(published("baseline"), fix={"phi": 1.0})
    for fit, why in ((untold, "phi is not identifiable"), (held, "phi was held")):
        found = phi_intervals(fit, KINDS).intervals
        assert {(i.low, i.high, i.why_none) for i in found.values()} == {(None, None, why)}


def test_mistakes_are_named(huber):
    """Each argument that cannot be is refused with its value."""
    with pytest.raises(UserError, match="'bca' is unknown"):
        phi_intervals(huber, ["bca"])
    with pytest.raises(UserError, match="level 95 is not between 0 and 1"):
        phi_intervals(huber, level=95)
    with pytest.raises(UserError, match="resamples 0"):
        phi_intervals(huber, resamples=0)
    with pytest.raises(UserError, match="seed -1 is negative"):
        phi_intervals(huber, seed=-1)
