"""Covariance and joint tests from values without one cell each, held to textbook cases."""

import numpy as np
import pytest
from scipy import stats

from looped.scaling.jackknife import (
    hotelling_p,
    jackknife_covariance,
    jackknife_error,
    linear_test,
)


def means_without(sample):
    """The means of a sample without each of its rows."""
    return (sample.sum(axis=0) - sample) / (len(sample) - 1)


def test_of_a_mean_it_is_the_variance_over_n():
    """The one statistic whose jackknife is known in closed form."""
    sample = np.random.default_rng(0).normal(size=(12, 3)) @ np.diag([1, 2, 3])
    covariance = jackknife_covariance(means_without(sample))
    np.testing.assert_allclose(covariance, np.cov(sample.T) / 12, rtol=1e-12)
    error = jackknife_error(means_without(sample)[:, 1])
    assert error == pytest.approx(sample[:, 1].std(ddof=1) / np.sqrt(12))


def test_one_parameter_is_students_t():
    """T^2 of a single value is the square of t with G - 1 degrees of freedom."""
    p = hotelling_p(np.array([0.3]), np.array([[0.1**2]]), cells=16)
    assert p == pytest.approx(2 * stats.t.sf(3.0, 15), rel=1e-6)


def test_a_true_hypothesis_has_a_uniform_p():
    """Of two means of nine normal rows, 5 % of p lie below 0.05, and half below one half."""
    generator = np.random.default_rng(1)
    root = np.array([[1.0, 0.0], [0.8, 0.6]])
    found = []
    for _ in range(2000):
        sample = generator.normal(size=(9, 2)) @ root.T
        covariance = jackknife_covariance(means_without(sample))
        found.append(hotelling_p(sample.mean(axis=0), covariance, cells=9))
    assert stats.kstest(found, "uniform").pvalue > 0.01


def test_a_linear_model_takes_its_part_away():
    """Values on the line pass whatever its slope; the coefficients are those of the line."""
    covariance = np.diag([0.01, 0.02, 0.03]) + 0.005
    model = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 3.0]])
    on_the_line = linear_test(model @ np.array([0.4, -2.0]), covariance, model=model, cells=12)
    assert on_the_line.coefficients == pytest.approx([0.4, -2.0])
    assert on_the_line.p == pytest.approx(1.0)
    # One direction is left: the T^2 of the contrast that the model cannot make.
    values = np.array([0.5, 0.1, 0.9])
    contrast = np.linalg.svd(model.T)[2][-1]
    t = contrast @ values / np.sqrt(contrast @ covariance @ contrast)
    test = linear_test(values, covariance, model=model, cells=12)
    assert test.p == pytest.approx(2 * stats.t.sf(abs(t), 11), rel=1e-4)


def test_too_few_cells_give_no_p():
    """Three cells span no covariance of three parameters."""
    values = np.array([0.1, 0.2, 0.3])
    test = linear_test(values, np.eye(3), model=np.ones((3, 1)), cells=3)
    assert test.p is None
    assert test.coefficients == pytest.approx([0.2])
