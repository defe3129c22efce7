"""Thousands of fits of one law at once: resamples, profiles, simulated data sets.

`fit_law` lets lmfit minimise. A bootstrap repeats that a thousand times and a coverage study a
million times; at 12 ms a fit, lmfit would take hours where the arrays below take minutes. All fits
step together through numpy; tests/scaling/test_many_fits.py holds them to lmfit's optimum.

Each step is a damped Newton step on the weighted Huber objective. Its curvature, J' diag(w psi') J,
is exact for the piecewise quadratic but may be singular, since residuals beyond delta add nothing;
the damping is the curvature of iteratively reweighted least squares, J' diag(w psi / u) J, which
never is, and which alone already descends.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from looped.scaling.huber import exact_objective, inner, psi, rho
from looped.scaling.law import Design, Floats

CHUNK = 256
"""Fits that step together: their arrays stay within the processor's cache."""


@dataclass(frozen=True, kw_only=True)
class ManyFits:
    """The optima of m fits of p parameters.

    Attributes:
        theta: parameters; shape (m, p).
        objective: weighted sum of rho at theta; shape (m,).
        converged: whether the last step changed the objective by less than the tolerance; (m,).
    """

    theta: Floats
    objective: Floats
    converged: NDArray[np.bool_]


def fit_many(
    design: Design,
    start: Floats,
    *,
    delta: float,
    free: NDArray[np.bool_],
    weights: Floats | None = None,
    log_loss: Floats | None = None,
    tolerance: float = 1e-10,
    max_steps: int = 300,
) -> ManyFits:
    """Minimise sum_i w_i rho(log L_hat_i - log L_i) for m pairs of weights and losses.

    Args:
        design: the n runs.
        start: where each fit starts; shape (m, p), or (p,) for all.
        delta: of Huber's function; infinity for least squares.
        free: which parameters move; the others keep their start. Shape (p,).
        weights: of the runs, such as how often a resample drew them; shape (m, n), or null for 1.
        log_loss: log L of each fit; shape (m, n), or null for the design's own.
        tolerance: relative decrease of the objective below which a fit has converged.
        max_steps: after which a fit counts as not converged.
    """
    given = [a.shape[0] for a in (start, weights, log_loss) if a is not None and a.ndim == 2]
    m, n = max(given, default=1), len(design)
    starts = np.broadcast_to(start, (m, start.shape[-1]))
    all_weights = np.broadcast_to(np.ones(n) if weights is None else weights, (m, n))
    all_losses = np.broadcast_to(design.log_loss if log_loss is None else log_loss, (m, n))
    parts = [
        _Descent(design, starts[i : i + CHUNK], delta, free).run(
            all_weights[i : i + CHUNK], all_losses[i : i + CHUNK], tolerance, max_steps
        )
        for i in range(0, m, CHUNK)
    ]
    return ManyFits(
        theta=np.concatenate([part.theta for part in parts]),
        objective=np.concatenate([part.objective for part in parts]),
        converged=np.concatenate([part.converged for part in parts]),
    )


def best_of(attempts: list[ManyFits]) -> ManyFits:
    """Of several attempts at the same m fits, the lowest optimum of each."""
    objectives = np.stack([attempt.objective for attempt in attempts])
    best = objectives.argmin(axis=0)
    fits = np.arange(len(best))
    return ManyFits(
        theta=np.stack([attempt.theta for attempt in attempts])[best, fits],
        objective=objectives[best, fits],
        converged=np.stack([attempt.converged for attempt in attempts])[best, fits],
    )


class _Descent:
    """One chunk of fits on its way down."""

    def __init__(
        self, design: Design, start: Floats, delta: float, free: NDArray[np.bool_]
    ) -> None:
        self.design = design
        self.delta = delta
        self.free = np.flatnonzero(free)
        low, high = design.bounds()
        self.low, self.high = low[self.free], high[self.free]
        self.theta = start.copy()
        self.theta[:, self.free] = np.clip(start[:, self.free], self.low, self.high)

    def run(self, weights: Floats, log_loss: Floats, tolerance: float, max_steps: int) -> ManyFits:
        m = len(self.theta)
        residuals = self.design.log_prediction(self.theta) - log_loss
        objective = (weights * rho(residuals, self.delta)).sum(axis=1)
        damping = np.full(m, 1e-3)
        converged = objective <= exact_objective(weights.sum(axis=1))
        active = np.flatnonzero(~converged)
        for _ in range(max_steps):
            if not len(active):
                break
            w, y = weights[active], log_loss[active]
            trial = self._step(self.theta[active], w, y, damping[active])
            residuals = self.design.log_prediction(trial) - y
            after = (w * rho(residuals, self.delta)).sum(axis=1)
            before = objective[active]
            better = after <= before
            self.theta[active[better]] = trial[better]
            objective[active[better]] = after[better]
            # A step that changes nothing although it was hardly damped ends the descent, upwards
            # too: at an optimum that was handed in, rounding decides the sign. So does one that no
            # damping makes any shorter.
            settled = (np.abs(before - after) <= tolerance * before) & (damping[active] < 1)
            damping[active] = np.clip(damping[active] * np.where(better, 0.2, 4.0), 1e-8, 1e8)
            settled |= damping[active] >= 1e7
            settled |= objective[active] <= exact_objective(w.sum(axis=1))
            converged[active[settled]] = True
            active = active[~settled]
        return ManyFits(theta=self.theta, objective=objective, converged=converged)

    def _step(self, theta: Floats, weights: Floats, log_loss: Floats, damping: Floats) -> Floats:
        prediction, jacobian = self.design.log_prediction_and_jacobian(theta)
        jacobian = jacobian[..., self.free]  # (m, n, k)
        residuals = prediction - log_loss
        influence = psi(residuals, self.delta)
        within = inner(residuals, self.delta)
        reweighted = weights * np.where(
            within > 0, 1.0, influence / np.where(residuals == 0, 1.0, residuals)
        )
        gradient = np.matmul((weights * influence)[:, np.newaxis, :], jacobian)[:, 0, :]
        transposed = jacobian.transpose(0, 2, 1)
        newton = np.matmul(transposed * (weights * within)[:, np.newaxis, :], jacobian)
        irls = np.matmul(transposed * reweighted[:, np.newaxis, :], jacobian)

        # A parameter at its bound whose gradient points outwards stays there.
        current = theta[:, self.free]
        stuck = ((current <= self.low) & (gradient > 0)) | ((current >= self.high) & (gradient < 0))
        moving = ~stuck
        gradient = gradient * moving
        curvature = newton + damping[:, np.newaxis, np.newaxis] * irls
        curvature = curvature * (moving[:, :, np.newaxis] & moving[:, np.newaxis, :])

        # Jacobi scaling makes the ridge on the diagonal a relative one.
        scale = np.sqrt(np.diagonal(irls, axis1=1, axis2=2))
        scale = np.where((scale > 0) & moving, scale, 1.0)
        curvature /= scale[:, :, np.newaxis] * scale[:, np.newaxis, :]
        diagonal = np.arange(len(self.free))
        curvature[:, diagonal, diagonal] += 1e-12 + 1e-6 * damping[:, np.newaxis] + stuck
        step = np.linalg.solve(curvature, -(gradient / scale)[..., np.newaxis])[..., 0] / scale

        trial = theta.copy()
        trial[:, self.free] = np.clip(current + step, self.low, self.high)
        return trial
