"""Tests of phi, residual tables, laws by recurrence, predictions and the sensitivity panel."""

import numpy as np
import pytest
from scipy import stats

from looped.scaling import fit_law
from looped.scaling.hypotheses import phi_test
from looped.scaling.laws_by_recurrence import laws_by_recurrence
from looped.scaling.prediction import leave_one_cell_out, leave_top_level_out
from looped.scaling.residual_tables import residuals_by
from looped.scaling.sensitivity import sensitivity
from tests.scaling.grids import TRUTH, published, synthetic


@pytest.fixture(scope="module")
def fit():
    return fit_law(published("baseline"))


@pytest.fixture(scope="module")
def squares():
    return fit_law(published("baseline"), estimator="least_squares")


def test_the_likelihood_ratio_is_the_f_test_under_least_squares(squares):
    """Textbook form from two separate fits: (S_0 - S) / S x (n - k)."""
    held = fit_law(published("baseline"), estimator="least_squares", fix={"phi": 0.0})
    ratio = (held.objective - squares.objective) / squares.objective * 110
    test = phi_test(squares, 0.0)
    assert test.statistic == pytest.approx(ratio, rel=1e-6)
    assert test.p == pytest.approx(stats.f.sf(ratio, 1, 110), rel=1e-4)


def test_aicc_speaks_against_what_the_data_speak_against(fit):
    """Both phi = 0 and phi = 1 are far from the published runs; phi at its estimate is not."""
    for value in (0.0, 1.0):
        test = phi_test(fit, value)
        assert test.delta_aicc > 100
        assert test.p < 1e-10
        assert test.p_cells < 1e-10
    at_estimate = phi_test(fit, fit.phi)
    assert at_estimate.p > 0.99
    # One parameter fewer: 2 in AIC, a little more corrected for 116 runs.
    assert at_estimate.delta_aicc == pytest.approx(-2.26, abs=0.02)


def test_a_true_hypothesis_is_rejected_as_often_as_it_should_be():
    """Under phi = 0.46 the p value is uniform: 5 % lie below 0.05."""
    rejected = [
        phi_test(
            fit_law(synthetic(noise=0.01, seed=s), estimator="least_squares", polish=1), TRUTH.phi
        ).p
        < 0.05
        for s in range(100)
    ]
    assert 1 <= sum(rejected) <= 11  # binomial(100, 0.05): 99 % lie within


def test_no_phi_no_test(fit):
    """A held phi, or one that cannot be told, is not tested."""
    held = fit_law(published("baseline"), fix={"phi": 0.5})
    untold = fit_law(synthetic(recurrences=(4,)))
    assert phi_test(held, 0.0) is None
    assert phi_test(untold, 0.0) is None
    assert sensitivity(untold) == []


def test_residuals_by_group_add_up(fit):
    """Group counts, biases and squares recombine to those of all runs."""
    for column, names in (("recurrences", ["1", "2", "4", "8"]), ("level", None)):
        groups = residuals_by(fit, column)
        assert names is None or list(groups) == names
        assert sum(g.num_runs for g in groups.values()) == 116
        squares = sum(g.num_runs * g.rmse**2 for g in groups.values())
        assert np.sqrt(squares / 116) == pytest.approx(fit.rmse)
        bias = sum(g.num_runs * g.bias for g in groups.values())
        assert bias / 116 == pytest.approx(fit.residuals_nats.mean())
    assert next(iter(residuals_by(fit, "level"))) == "4.64e+17 FLOPs"
    assert list(residuals_by(fit, "level"))[-1] == "2.15e+19 FLOPs"


def test_laws_of_single_recurrence_counts():
    """Of r = 1 alone it is the plain law; its numbers are those that made the data."""
    laws = laws_by_recurrence(fit_law(synthetic(), estimator="least_squares"))
    assert sorted(laws) == [1, 2, 4, 8]
    for name in ("E", "alpha", "beta"):
        assert getattr(laws[1].law, name) == pytest.approx(getattr(TRUTH, name), rel=1e-3)
    assert all(law.identifiable for law in laws.values())


def test_a_cell_is_predicted_from_the_others(squares):
    """The first cell's share of the error, fitted by lmfit without it."""
    table = published("baseline")
    errors = []
    for cell in range(squares.num_cells):
        inside = squares.cells != cell
        law = fit_law(table[inside], estimator="least_squares", polish=2).law
        left = table[~inside]
        errors.extend(
            left["loss"]
            - law.loss(
                left["recurrences"], left["n_once"], n_rec=left["n_rec"], tokens=left["tokens"]
            )
        )
    found = leave_one_cell_out(squares)
    assert found.num_runs == 116
    assert found.rmse == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-4)
    assert found.rmse > squares.rmse


def test_the_top_budget_is_predicted_from_the_lower_ones(fit):
    """16 runs of 2.15e19 FLOPs, and an exact law predicts them exactly."""
    found = leave_top_level_out(fit)
    assert (found.left_out, found.num_runs) == ("all of 2.15e+19 FLOPs", 16)
    assert fit.rmse < found.rmse < 0.05
    exact = leave_top_level_out(fit_law(synthetic(), estimator="least_squares"))
    assert exact.rmse < 1e-6
    for few in (
        {"budgets": (1e19,)},
        {"budgets": (1e18, 1e19)},
        {"token_counts": (5e9, 1e10, 2e10)},
    ):
        assert leave_top_level_out(fit_law(synthetic(noise=0.003, **few))) is None


def test_the_sensitivity_panel(fit):
    """Every alternative of the issue, with the figures that are published for two of them."""
    matched = published("truncated")
    rows = {
        row.change: row
        for row in sensitivity(
            fit_law(matched),
            other_runs={"r = 1 runs of all budgets": published("truncated", match_budgets=False)},
        )
    }
    assert rows["r = 1 runs of all budgets"].phi == pytest.approx(0.3515, abs=2e-3)
    assert rows["r = 1 runs of all budgets"].num_runs == 90
    assert rows["without r = 1"].phi is None
    assert "no run with r = 1" in rows["without r = 1"].why_none
    assert {f"without r = {r}" for r in (1, 2, 4, 8)} < set(rows)
    assert rows["without runs of uncertain quality"].num_runs == 77
    rows = {row.change: row for row in sensitivity(fit)}
    assert rows["least squares on log L"].phi == pytest.approx(0.4645, abs=2e-3)
    moved = published("baseline")
    moved["n_once"] -= moved["n_injection"]
    moved["n_rec"] += moved["n_injection"]
    assert rows["injection counted in N_rec"].phi == pytest.approx(fit_law(moved).phi, abs=1e-4)
    assert rows["injection counted in N_rec"].phi != pytest.approx(fit.phi, abs=1e-3)


def test_an_unknown_injection_is_not_moved(fit):
    """Tables that do not tell the injection's size get no such row, rather than a wrong one."""
    bare = fit_law(published("baseline").drop(columns=["n_injection", "quality"]))
    changes = {row.change for row in sensitivity(bare)}
    assert "injection counted in N_rec" not in changes
    assert "without runs of uncertain quality" not in changes


def test_sensitivity_makes_no_run_that_cannot_be_fitted():
    """More injection parameters than N_once, or noise below any delta, ended the whole fit."""
    table = synthetic().assign(n_injection=1e12)
    changes = [row.change for row in sensitivity(fit_law(table, polish=1))]
    assert "least squares on log L" in changes
    assert not any("injection" in change or "fits the noise" in change for change in changes)
