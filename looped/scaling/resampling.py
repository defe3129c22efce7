"""phi fitted again and again: to resampled cells, without one cell, to residuals of other sign.

The unit is the cell, the runs of one budget and recurrence count: they share a schedule, a batch
size and a learning rate, so their errors may go together, and resampling single runs would count
that shared error as if it averaged out.
"""

from dataclasses import dataclass

import numpy as np

from looped.scaling.fitted import Fitted
from looped.scaling.law import LOG_E, PHI, Floats
from looped.scaling.many_fits import ManyFits, best_of
from looped.scaling.robust_error import phi_errors

RESTART_SPREAD = np.array([0.1, 0.3, 0.3, 0.3, 0.3, 0.1])
"""Relative spread of restarts around the optimum in (log E, log a, log b, alpha, beta, phi)."""


@dataclass(frozen=True, kw_only=True)
class Resampled:
    """phi of many refits.

    Attributes:
        phi: of the refits that succeeded; shape (resamples - failed,).
        errors: their cluster-robust standard errors; same shape.
        failed: refits that did not converge, ended at a bound of phi, or whose cells cannot tell
            phi at all (no error could be computed).
    """

    phi: Floats
    errors: Floats
    failed: int


def bootstrap_cells(
    fitted: Fitted, *, resamples: int, seed: int = 0, restarts: int = 1
) -> Resampled:
    """Draw as many cells as there are, with replacement, and fit what was drawn.

    Args:
        fitted: the fit; each resample starts at its optimum.
        resamples: how many.
        seed: of the draws.
        restarts: further descents of every resample from points around the optimum.
    """
    generator = np.random.default_rng(seed)
    cells = fitted.num_cells
    draws = generator.multinomial(cells, np.full(cells, 1 / cells), size=resamples)
    weights = draws[:, fitted.cells].astype(float)
    attempts = [fitted.refit(weights=weights)]
    for _ in range(restarts):
        start = _around(fitted, generator, size=resamples)
        attempts.append(fitted.refit(weights=weights, start=start))
    return _collect(fitted, best_of(attempts), weights=weights)


def wild_cells(fitted: Fitted, *, resamples: int, seed: int = 0) -> Resampled:
    """Keep the design; flip the residuals of whole cells at random, and fit again.

    Weights +-1 (Rademacher), one per cell (Cameron, Gelbach and Miller, Rev. Econ. Stat. 90, 2008).
    """
    generator = np.random.default_rng(seed)
    signs = generator.choice([-1.0, 1.0], size=(resamples, fitted.num_cells))
    prediction = fitted.design.log_prediction(fitted.theta)
    log_loss = prediction - signs[:, fitted.cells] * fitted.residuals
    return _collect(fitted, fitted.refit(log_loss=log_loss), log_loss=log_loss)


def _around(fitted: Fitted, generator: np.random.Generator, *, size: int) -> Floats:
    spread = np.zeros(len(fitted.theta))
    known = min(len(spread), len(RESTART_SPREAD))
    spread[LOG_E:known] = RESTART_SPREAD[:known]
    noise = generator.normal(size=(size, len(spread)))
    return np.asarray(fitted.theta + noise * spread * fitted.free * np.maximum(fitted.theta, 0.3))


def _collect(
    fitted: Fitted,
    found: ManyFits,
    *,
    weights: Floats | None = None,
    log_loss: Floats | None = None,
) -> Resampled:
    errors = phi_errors(
        fitted.design,
        found.theta,
        delta=fitted.delta,
        free=fitted.free,
        cells=fitted.cells,
        weights=weights,
        log_loss=log_loss,
    )
    phi = found.theta[:, PHI]
    low, high = fitted.design.bounds()
    good = found.converged & (phi > low[PHI]) & (phi < high[PHI])
    good &= np.isfinite(errors) & (errors > 0)
    return Resampled(phi=phi[good], errors=errors[good], failed=int((~good).sum()))
