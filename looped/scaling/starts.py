"""Where the minimiser starts: a coarse search over the three exponents.

For fixed (phi, alpha, beta) the law is linear in (E, a, b), all of them positive. So each point of
a coarse grid over the exponents costs one non-negative least squares, in relative errors, and gives
the best E, a, b that belong to it. The rest of the work is descent.
"""

from collections.abc import Mapping
from itertools import product

import numpy as np
from scipy.optimize import nnls

from looped.scaling.law import ALPHA, BETA, LOG_A, LOG_B, LOG_E, PHI, Design, Floats

PHI_GRID = np.linspace(0, 1, 5)
EXPONENT_GRID = np.geomspace(0.05, 1, 8)


def search_starts(design: Design, held: Mapping[str, float]) -> Floats:
    """Starting points, the most promising first.

    Args:
        design: the runs, in the plain form of the law.
        held: parameters of theta that keep a value, by name.

    Returns:
        theta of every point of the grid; shape (points, p), within the design's bounds.
    """
    phis = [held["phi"]] if "phi" in held else PHI_GRID
    alphas = [held["alpha"]] if "alpha" in held else EXPONENT_GRID
    betas = [held["beta"]] if "beta" in held else EXPONENT_GRID
    low, high = design.bounds()
    loss = np.exp(design.log_loss)
    floor = np.exp(held["log_E"]) if "log_E" in held else None

    points: list[tuple[float, Floats]] = []
    for phi, alpha, beta in product(phis, alphas, betas):
        theta = np.empty(PHI + 1)
        theta[[ALPHA, BETA, PHI]] = alpha, beta, phi
        size, _ = design.effective_sizes(theta)
        columns = [
            np.exp(-alpha * (np.log(size) - design.log_size_mean)),
            np.exp(-beta * design.log_tokens),
        ]
        if floor is None:
            columns.append(np.ones_like(loss))
        target = loss if floor is None else loss - floor
        terms, misfit = nnls(np.stack(columns, axis=1) / loss[:, np.newaxis], target / loss)
        with np.errstate(divide="ignore"):  # a term of zero: log 0 is clipped to the bound
            theta[[LOG_A, LOG_B]] = np.log(terms[:2])
            theta[LOG_E] = np.log(terms[2] if floor is None else floor)
        points.append((misfit, np.clip(theta, low, high)))
    points.sort(key=lambda point: point[0])
    starts = np.stack([theta for _, theta in points])
    for name, value in held.items():
        starts[:, design.names.index(name)] = value
    return starts
