"""The profile of the objective in phi: how much worse the best fit gets when phi is held elsewhere.

The interval holds every phi at which

    2 (S(phi) - S) / dispersion <= F(1, n - k) quantile,

S being the objective minimised over the other parameters. Under least squares this is lmfit's
`conf_interval`; under Huber's function lmfit would compare sums of squares, which the fit has not
minimised, so the profile is computed here for both, and held to lmfit's in the tests.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from looped.scaling.fitted import Fitted
from looped.scaling.law import PHI, Floats

SEARCH_POINTS = 17
SEARCH_ROUNDS = 4
"""Each round narrows the bracket of an end sixteen times."""

CURVE_POINTS = 41
CURVE_REACH = 2.0
"""The curve extends this many times as far from the optimum as the ends of the interval."""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The objective as a function of phi.

    Attributes:
        phi: values at which it was minimised over the rest; ascending, shape (m,).
        excess: 2 (S(phi) - S) / dispersion there; shape (m,).
        threshold: excess at the ends of the interval.
        low: lower end of the interval; null when the profile never rises to the threshold.
        high: upper end; null likewise.
    """

    phi: Floats
    excess: Floats
    threshold: float
    low: float | None
    high: float | None


def profile_phi(fitted: Fitted, *, level: float = 0.95) -> Profile:
    """Profile phi and find the ends of its interval.

    Args:
        fitted: the fit, with phi free.
        level: of the interval.
    """
    freedom = len(fitted.design) - int(fitted.free.sum())
    threshold = float(stats.f.ppf(level, 1, freedom))
    bounds = [float(bound[PHI]) for bound in fitted.design.bounds()]
    low, high = (_crossing(fitted, bound, threshold) for bound in bounds)
    first, last = (
        bound if end is None else fitted.phi + CURVE_REACH * (end - fitted.phi)
        for end, bound in zip((low, high), bounds, strict=True)
    )
    curve = np.linspace(max(first, bounds[0]), min(last, bounds[1]), CURVE_POINTS)
    phi = np.sort(np.append(curve, fitted.phi))
    return Profile(phi=phi, excess=excess_at(fitted, phi), threshold=threshold, low=low, high=high)


def excess_at(fitted: Fitted, phi: Floats) -> Floats:
    """2 (S(phi) - S) / dispersion at each phi; shape (m,).

    The statistic of the likelihood ratio test with estimated dispersion.
    """
    start = np.tile(fitted.theta, (len(phi), 1))
    start[:, PHI] = phi
    free = fitted.free.copy()
    free[PHI] = False
    found = replace(fitted, free=free).refit(start=start)
    return np.asarray(2 * (found.objective - fitted.objective) / fitted.dispersion)


def _crossing(fitted: Fitted, bound: float, threshold: float) -> float | None:
    """Where the excess passes the threshold between the optimum and one bound of phi.

    Each round lays points between the last one below the threshold and the first one above it.
    """
    inner, below = fitted.phi, 0.0
    outer = bound
    share = np.linspace(0, 1, SEARCH_POINTS)[1:]
    spacing = share**2  # at first most points near the optimum
    for _ in range(SEARCH_ROUNDS):
        phi = inner + spacing * (outer - inner)
        excess = excess_at(fitted, phi)
        beyond = np.flatnonzero(excess >= threshold)
        if not len(beyond):
            return None
        first = int(beyond[0])
        if first:
            inner, below = float(phi[first - 1]), float(excess[first - 1])
        outer, above = float(phi[first]), float(excess[first])
        spacing = share
    return inner + (threshold - below) / (above - below) * (outer - inner)
