"""From the starting points to the optimum: lmfit polishes the best of them.

lmfit's `success` only means that it did not raise. What it ended at is judged afterwards
(`identifiability.py`); here the optimum is the lowest of many descents, and how many of them reach
it is counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import lmfit
import numpy as np
from numpy.typing import NDArray

from looped.scaling.huber import exact_objective, rho
from looped.scaling.law import Design, Floats
from looped.scaling.starts import search_starts

SAME_OPTIMUM = 1e-6
"""Relative difference of objectives below which two descents have reached the same optimum."""

INTERIOR = 1e-3
"""A start at its bound is moved inwards by this part of the box: the descent cannot leave a bound
at which its trust region is empty."""


MAX_EVALUATIONS = 500
"""Of one descent. A sound one needs 10 to 100; one that creeps along a bound would need thousands
(47 s of them were seen) and is overtaken by another start."""


@dataclass(frozen=True, kw_only=True)
class Optimum:
    """The best of several descents.

    Attributes:
        theta: parameters of the law as `Design` orders them; shape (p,).
        free: which of them were fitted; shape (p,).
        objective: sum of rho at theta.
        num_starts: descents made.
        num_reached: descents that ended at this optimum.
        worst_objective: of the descent that ended highest.
        aborted: whether the best descent ran out of evaluations.
        lmfit_result: of the best descent, for those who know lmfit. Its `chisqr` and `covar` are
            of residuals in units of delta and ignore Huber's function.
    """

    theta: Floats
    free: NDArray[np.bool_]
    objective: float
    num_starts: int
    num_reached: int
    worst_objective: float
    aborted: bool
    lmfit_result: lmfit.minimizer.MinimizerResult


def minimise(
    design: Design, *, delta: float, held: Mapping[str, float], polish: int = 20
) -> Optimum:
    """Minimise the sum of rho over the parameters that are not held.

    Args:
        design: the runs, at least as many as free parameters.
        delta: of Huber's function; infinity for least squares.
        held: parameters of theta that keep a value, by name.
        polish: how many of the starting points lmfit descends from.
    """
    free = np.array([name not in held for name in design.names])
    starts = search_starts(design, held)[:polish]
    descents = [_descend(design, start, delta=delta, free=free) for start in starts]
    objectives = np.array([objective for _, objective, _ in descents])
    best = int(objectives.argmin())
    theta, objective, result = descents[best]
    return Optimum(
        theta=theta,
        free=free,
        objective=objective,
        num_starts=len(descents),
        num_reached=int(
            (objectives <= objective * (1 + SAME_OPTIMUM) + exact_objective(len(design))).sum()
        ),
        worst_objective=float(objectives.max()),
        aborted=bool(result.aborted),
        lmfit_result=result,
    )


def _descend(
    design: Design, start: Floats, *, delta: float, free: NDArray[np.bool_]
) -> tuple[Floats, float, lmfit.minimizer.MinimizerResult]:
    # Residuals are passed in units of their own scale, so that tolerances mean the same for every
    # estimator and the loss function bends at 1.
    huber = bool(np.isfinite(delta))
    unit = delta if huber else 1e-3
    low, high = design.bounds()
    inside = np.clip(start, low + INTERIOR * (high - low), high - INTERIOR * (high - low))
    parameters = lmfit.Parameters()
    for i, name in enumerate(design.names):
        if free[i]:
            parameters.add(name, value=inside[i], min=low[i], max=high[i])
        else:
            parameters.add(name, value=start[i], vary=False)

    def theta_of(values: lmfit.Parameters) -> Floats:
        return np.array([values[name].value for name in design.names])

    def residuals(values: lmfit.Parameters) -> Floats:
        return np.asarray((design.log_prediction(theta_of(values)) - design.log_loss) / unit)

    def jacobian(values: lmfit.Parameters) -> Floats:
        _, by_theta = design.log_prediction_and_jacobian(theta_of(values))
        return np.asarray(by_theta[:, free] / unit)

    # lmfit derives standard errors from its covariance, which is singular at a bound; they are not
    # used here (robust_error.py).
    with np.errstate(invalid="ignore", divide="ignore"):
        result = lmfit.Minimizer(residuals, parameters).minimize(
            method="least_squares",
            Dfun=jacobian,
            loss="huber" if huber else "linear",
            x_scale="jac",
            max_nfev=MAX_EVALUATIONS,
            ftol=1e-12,
            xtol=1e-12,
            gtol=1e-12,
        )
    theta = theta_of(result.params)
    objective = float(rho(design.log_prediction(theta) - design.log_loss, delta).sum())
    return theta, objective, result
