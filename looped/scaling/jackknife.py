"""What the values without one cell each tell: their covariance, and tests that rest on it.

Left out in turn is each of G cells (the runs of one budget and recurrence count). With x_(c) the
values of q parameters without cell c,

    V = (G - 1) / G  sum_c (x_(c) - mean x_(c)) (x_(c) - mean x_(c))'

and G - 1 degrees of freedom; docs/intervals.md says how well that covers. Several parameters
together are tested by Hotelling's T^2 = x' V^-1 x, for which

    T^2 (G - m) / ((G - 1) m)  ~  F(m, G - m)

with m parameters (Hotelling, Annals of Mathematical Statistics 2, 1931).
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from looped.scaling.law import Floats

MIN_CELLS = 4
"""Cells below which their spread says nothing."""

ROUNDING = 1e-6
"""Exponents and offsets that differ by less do so for the descent's tolerance, not for the data."""


@dataclass(frozen=True, kw_only=True)
class LinearTest:
    """Whether estimates follow a linear model of fewer parameters.

    Attributes:
        coefficients: of the model, by generalised least squares; shape (k,).
        p: of the test that the model holds; null when there are too few cells for it.
    """

    coefficients: Floats
    p: float | None


def jackknife_covariance(values: Floats) -> Floats:
    """Covariance of q parameters from their values without one cell each.

    Args:
        values: shape (G, q).

    Returns:
        Shape (q, q).
    """
    cells = len(values)
    centred = values - values.mean(axis=0)
    return np.asarray((cells - 1) / cells * centred.T @ centred)


def jackknife_error(values: Floats) -> float:
    """Standard error of one parameter from its G values without one cell each; shape (G,)."""
    return float(np.sqrt(jackknife_covariance(values[:, np.newaxis])[0, 0]))


def hotelling_p(values: Floats, covariance: Floats, *, cells: int) -> float | None:
    """P of the test that m parameters are all zero; null with too few cells for it.

    Args:
        values: shape (m,), m >= 1.
        covariance: by the jackknife; shape (m, m).
        cells: G.
    """
    nothing = np.zeros((len(values), 0))
    return linear_test(values, covariance, model=nothing, cells=cells).p


def linear_test(values: Floats, covariance: Floats, *, model: Floats, cells: int) -> LinearTest:
    """Test values = model @ coefficients, by the part of T^2 that no coefficients take away.

    Args:
        values: estimates; shape (q,).
        covariance: by the jackknife; shape (q, q).
        model: shape (q, k), k < q.
        cells: G.
    """
    rounded = covariance + ROUNDING**2 * np.eye(len(values))
    root = np.linalg.cholesky(rounded)
    white_values = np.linalg.solve(root, values)
    white_model = np.linalg.solve(root, model)
    coefficients, *_ = np.linalg.lstsq(white_model, white_values, rcond=None)
    m = len(values) - model.shape[1]
    if cells <= len(values):
        return LinearTest(coefficients=coefficients, p=None)
    t_squared = float(((white_values - white_model @ coefficients) ** 2).sum())
    p = float(stats.f.sf(t_squared * (cells - m) / ((cells - 1) * m), m, cells - m))
    return LinearTest(coefficients=coefficients, p=p)
