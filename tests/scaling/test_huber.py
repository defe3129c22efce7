"""Huber's function and what is estimated from it."""

import numpy as np
import pytest
from scipy.special import huber as scipy_huber

from looped.scaling.huber import dispersion, inner, mean_curvature, noise_scale, psi, rho

RESIDUALS = np.array([-3e-2, -1e-3, -4e-4, 0.0, 5e-4, 1e-3, 2e-3])


@pytest.mark.parametrize("delta", [1e-3, 5e-4])
def test_rho_is_hubers_function(delta):
    """Against scipy's: another factor or another bend would move every published objective."""
    np.testing.assert_allclose(rho(RESIDUALS, delta), scipy_huber(delta, RESIDUALS), rtol=1e-14)


def test_infinite_delta_is_least_squares():
    """The one formula must serve both estimators."""
    np.testing.assert_array_equal(rho(RESIDUALS, np.inf), RESIDUALS**2 / 2)
    np.testing.assert_array_equal(psi(RESIDUALS, np.inf), RESIDUALS)
    assert inner(RESIDUALS, np.inf).all()


def test_psi_is_the_derivative_of_rho():
    """A wrong psi would make gradients and standard errors wrong although the optimum is right."""
    u, h = np.array([-2.3e-3, -0.7e-3, 0.3e-3, 1.9e-3]), 1e-9
    slope = (rho(u + h, 1e-3) - rho(u - h, 1e-3)) / (2 * h)
    np.testing.assert_allclose(psi(u, 1e-3), slope, rtol=1e-6)


def test_dispersion_is_the_residual_variance_under_least_squares():
    """What makes the likelihood ratio an F statistic."""
    u = np.random.default_rng(0).normal(0, 2.0, 50)
    assert dispersion(u, np.inf, num_parameters=6) == pytest.approx((u**2).sum() / 44)


def test_the_curvature_of_a_fit_is_not_flattered_by_the_points_it_passes_through():
    """As many residuals as parameters lie within delta by being fitted; they do not count."""
    assert mean_curvature(10, 10, num_parameters=4) == 1.0
    assert mean_curvature(10, 30, num_parameters=4) == pytest.approx(6 / 26)
    assert mean_curvature(3, 30, num_parameters=4) == pytest.approx(1 / 30)


def test_noise_scale_ignores_outliers():
    """The delta that fits the noise must not be blown up by the runs that Huber tames."""
    u = np.random.default_rng(1).normal(0, 0.01, 10_001)
    u[:500] = 5.0
    assert noise_scale(u) == pytest.approx(0.01, rel=0.1)
