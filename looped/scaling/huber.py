"""The objective of the fit: Huber's function of the residuals u = log L_hat - log L.

    rho(u) = u^2 / 2                    for |u| <= delta
             delta (|u| - delta / 2)    beyond

Least squares is the case delta = infinity, so one set of formulas serves both estimators.
"""

import numpy as np
from numpy.typing import ArrayLike

from looped.scaling.law import Floats

NORMAL_EFFICIENCY = 1.345
"""delta / (standard deviation) at which Huber's estimator keeps 95 % of the efficiency of least
squares on normal noise (Huber, Robust Statistics, 1981)."""

ROUND_OFF = 1e-9
"""Residuals of log L below this are rounding: a fit with no larger ones is exact."""

MAD_TO_SIGMA = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""


def rho(residuals: Floats, delta: float) -> Floats:
    """Huber's function of each residual."""
    size = np.abs(residuals)
    if np.isinf(delta):
        return np.asarray(0.5 * residuals**2)
    return np.where(size <= delta, 0.5 * residuals**2, delta * (size - 0.5 * delta))


def psi(residuals: Floats, delta: float) -> Floats:
    """Derivative of rho: the residual, cut off at +-delta."""
    return np.clip(residuals, -delta, delta)


def inner(residuals: Floats, delta: float) -> Floats:
    """Second derivative of rho: 1 where the residual is within delta, else 0."""
    return (np.abs(residuals) <= delta).astype(float)


def exact_objective(num_runs: ArrayLike) -> Floats:
    """Sum of rho at which a fit of so many runs is exact but for rounding."""
    return np.asarray(0.5 * np.asarray(num_runs, dtype=float) * ROUND_OFF**2)


def noise_scale(residuals: ArrayLike) -> float:
    """Standard deviation of the residuals' bulk, from their median absolute size."""
    return float(MAD_TO_SIGMA * np.median(np.abs(residuals)))


def dispersion(residuals: Floats, delta: float, *, num_parameters: int) -> float:
    """By how much twice the objective must be divided to be chi-squared.

    mean(psi^2) / mean(psi'), with the degrees of freedom taken off; the residual variance under
    least squares. Source: Heritier and Ronchetti, JASA 89 (1994), the likelihood ratio test of
    M-estimators.

    Args:
        residuals: u at the optimum; shape (n,).
        delta: of Huber's function.
        num_parameters: k, parameters that were fitted; n > k.

    Returns:
        Above 0, also for an exact fit.
    """
    n = len(residuals)
    inside = float(inner(residuals, delta).sum())
    curvature = mean_curvature(inside, n, num_parameters=num_parameters)
    spread = float((psi(residuals, delta) ** 2).sum()) / (n - num_parameters)
    return max(spread, ROUND_OFF**2) / float(curvature)


def mean_curvature(num_inner: ArrayLike, num_runs: ArrayLike, *, num_parameters: int) -> Floats:
    """Expected psi' of a new residual, from how many fitted residuals lie within delta.

    A fit near least absolute deviations passes exactly through k of its n points, so k of the
    residuals within delta are there because they were fitted: (inner - k) / (n - k). Under least
    squares all are within, and it is 1. Never below 1 / n, so that it can be divided by.
    """
    inside, n = np.asarray(num_inner, dtype=float), np.asarray(num_runs, dtype=float)
    return np.asarray(
        np.maximum((inside - num_parameters) / np.maximum(n - num_parameters, 1.0), 1 / n)
    )
