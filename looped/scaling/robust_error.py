"""The standard error of phi when runs of one cell err together.

An M-estimate moves by -H^-1 s when a cell is added, with s = sum over its runs of psi(u) J and
H = mean(psi') J'J. The spread of those movements over G cells is the cluster-robust covariance

    V = G / (G - 1)  (n - 1) / (n - k)  H^-1 (sum_c s_c s_c') H^-1

(Liang and Zeger, Biometrika 73, 1986; Huber's H with the correction of CR1). H takes the mean of
psi' over all runs (`mean_curvature`): the exact J' diag(psi') J would rest on the few residuals
within delta.
"""

import numpy as np
from numpy.typing import NDArray

from looped.scaling.huber import inner, mean_curvature, psi
from looped.scaling.law import PHI, Design, Floats


def phi_errors(
    design: Design,
    theta: Floats,
    *,
    delta: float,
    free: NDArray[np.bool_],
    cells: NDArray[np.intp],
    weights: Floats | None = None,
    log_loss: Floats | None = None,
) -> Floats:
    """Cluster-robust standard error of the first exponent, for m fits at once.

    Args:
        design: the n runs.
        theta: optima; shape (m, p).
        delta: of Huber's function.
        free: which parameters were fitted, phi among them; shape (p,).
        cells: number of each run's cell; shape (n,).
        weights: how often each run was drawn; shape (m, n), null for once.
        log_loss: log L of each fit; shape (m, n), null for the design's own.

    Returns:
        Shape (m,); NaN where the curvature is singular.
    """
    influence = cell_influence(
        design, theta, delta=delta, free=free, cells=cells, weights=weights, log_loss=log_loss
    )
    m, n = len(theta), len(design)
    drawn = np.ones((m, n)) if weights is None else weights
    one_hot = np.eye(cells.max() + 1)[cells]
    num_cells = (drawn @ (one_hot / one_hot.sum(axis=0))).sum(axis=1)  # a cell drawn twice is two
    num_runs = drawn.sum(axis=1)
    k = int(free.sum())
    # A resample that happens to hold too few cells has no error at all.
    with np.errstate(divide="ignore", invalid="ignore"):
        correction = num_cells / (num_cells - 1) * (num_runs - 1) / (num_runs - k)
        return np.asarray(np.sqrt(correction * (influence**2).sum(axis=1)))


def cell_influence(
    design: Design,
    theta: Floats,
    *,
    delta: float,
    free: NDArray[np.bool_],
    cells: NDArray[np.intp],
    weights: Floats | None = None,
    log_loss: Floats | None = None,
) -> Floats:
    """How far each cell moves phi, to first order; arguments as of `phi_errors`.

    A cell drawn w times counts w times at one place: its squared movement is w times that of one
    draw.

    Returns:
        Shape (m, cells).
    """
    n = len(design)
    drawn = np.ones((len(theta), n)) if weights is None else weights
    target = design.log_loss if log_loss is None else log_loss
    prediction, jacobian = design.log_prediction_and_jacobian(theta)
    jacobian = jacobian[..., free]
    residuals = prediction - target
    curvature = np.matmul((jacobian * drawn[..., np.newaxis]).transpose(0, 2, 1), jacobian)
    inside = (drawn * inner(residuals, delta)).sum(axis=1)
    bend = mean_curvature(inside, drawn.sum(axis=1), num_parameters=int(free.sum()))
    curvature *= bend[:, np.newaxis, np.newaxis]
    scale = np.sqrt(np.diagonal(curvature, axis1=1, axis2=2))
    scale = np.where(scale > 0, scale, 1.0)
    curvature /= scale[:, :, np.newaxis] * scale[:, np.newaxis, :]
    diagonal = np.arange(curvature.shape[1])
    curvature[:, diagonal, diagonal] += 1e-12  # keeps an exactly singular resample solvable

    # Only phi's row of H^-1 is needed: H is symmetric, so solve for its column.
    position = int(free[:PHI].sum())
    unit = np.zeros((len(theta), curvature.shape[1], 1))
    unit[:, position] = 1.0
    row = np.linalg.solve(curvature, unit)[..., 0] / scale / scale[:, [position]]
    by_run = np.einsum("mnk,mk->mn", jacobian, row) * psi(residuals, delta) * np.sqrt(drawn)
    return np.asarray(-by_run @ np.eye(cells.max() + 1)[cells])
