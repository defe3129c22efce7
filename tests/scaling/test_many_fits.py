"""The solver for thousands of fits finds what lmfit finds."""

import numpy as np
import pytest

from looped.scaling.fit import fit_law
from looped.scaling.fitted import Fitted
from looped.scaling.law import PHI, Design
from looped.scaling.many_fits import ManyFits, best_of, fit_many
from tests.scaling.grids import TRUTH, published, synthetic

TABLES = {"published": lambda: published("baseline"), "truncated": lambda: published("truncated")}


@pytest.mark.parametrize("estimator", ["huber", "least_squares"])
@pytest.mark.parametrize("name", TABLES)
def test_resamples_reach_lmfits_optimum(estimator, name):
    """Weighted by how often a run was drawn = lmfit on a table with repeated rows."""
    table = TABLES[name]()
    fitted = Fitted.of(fit_law(table, estimator=estimator, polish=3))
    draws = np.random.default_rng(3).multinomial(
        fitted.num_cells, np.full(fitted.num_cells, 1 / fitted.num_cells), size=6
    )
    weights = draws[:, fitted.cells].astype(float)
    found = fitted.refit(weights=weights)
    for i, weight in enumerate(weights):
        repeated = table.loc[np.repeat(table.index, weight.astype(int))]
        alone = fit_law(repeated, estimator=estimator, polish=3)
        assert found.objective[i] == pytest.approx(alone.objective, rel=1e-6)
        assert found.theta[i, PHI] == pytest.approx(alone.law.phi, abs=1e-4)
    assert found.converged.all()


def test_other_losses_reach_lmfits_optimum():
    """Simulated data sets are fitted to their own losses, each with its own answer."""
    tables = [synthetic(noise=0.01, seed=seed) for seed in range(3)]
    log_losses = np.stack([np.log(table["loss"].to_numpy()) for table in tables])
    design = Design.of_runs(tables[0])
    found = fit_many(
        *(design, design.to_theta(TRUTH)),
        delta=1e-3,
        free=np.ones(6, dtype=bool),
        log_loss=log_losses,
    )
    for i, table in enumerate(tables):
        alone = fit_law(table, polish=3)
        assert found.objective[i] == pytest.approx(alone.objective, rel=1e-6)
        assert found.theta[i, PHI] == pytest.approx(alone.law.phi, abs=1e-4)


def test_held_parameters_do_not_move_and_bounds_hold():
    """A profile needs phi exactly where it was put; a resample may not leave the box."""
    design = Design.of_runs(published("baseline"))
    start = np.tile(design.to_theta(TRUTH), (3, 1))
    start[:, PHI] = [-0.5, 0.0, 1.0]
    free = np.arange(6) != PHI
    found = fit_many(design, start, delta=np.inf, free=free)
    np.testing.assert_array_equal(found.theta[:, PHI], [-0.5, 0.0, 1.0])
    low, high = design.bounds()
    assert (found.theta >= low).all()
    assert (found.theta <= high).all()
    for i, phi in enumerate((-0.5, 0.0, 1.0)):
        alone = fit_law(published("baseline"), estimator="least_squares", fix={"phi": phi})
        assert found.objective[i] == pytest.approx(alone.objective, rel=1e-6)


def test_a_singular_resample_does_not_stop_the_others():
    """One drawing of a single run has no unique fit; its neighbours must not suffer."""
    fitted = Fitted.of(fit_law(published("baseline"), polish=1))
    weights = np.ones((2, 116))
    weights[0] = 0
    weights[0, 7] = 116
    found = fitted.refit(weights=weights)
    assert found.objective[1] == pytest.approx(fitted.objective, rel=1e-9)
    assert np.isfinite(found.theta).all()


def test_the_best_attempt_is_taken_fit_by_fit():
    """Restarts may only improve: the lower optimum of each fit, with its own parameters."""
    first = ManyFits(
        theta=np.array([[1.0], [2.0]]),
        objective=np.array([0.5, 0.1]),
        converged=np.array([True, True]),
    )
    second = ManyFits(
        theta=np.array([[3.0], [4.0]]),
        objective=np.array([0.4, 0.2]),
        converged=np.array([False, True]),
    )
    best = best_of([first, second])
    assert best.theta.tolist() == [[3.0], [2.0]]
    assert best.objective.tolist() == [0.4, 0.1]
    assert best.converged.tolist() == [False, True]


@pytest.mark.parametrize("estimator", ["huber", "least_squares"])
def test_an_optimum_that_is_handed_in_has_converged(estimator):
    """Rounding made steps from it fail or gain by chance until they ran out: `not converged`."""
    for seed in range(20):
        fitted = Fitted.of(
            fit_law(synthetic(noise=0.003, seed=seed), estimator=estimator, polish=1)
        )
        found = fit_many(
            *(fitted.design, fitted.theta),
            delta=fitted.delta,
            free=fitted.free,
            weights=np.ones((2, len(fitted.design))),
            max_steps=30,
        )
        assert found.converged.all()
        assert found.objective == pytest.approx(fitted.objective, rel=1e-9)
