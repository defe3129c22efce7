"""Is a recurrence worth nothing (phi = 0), or as much as unique blocks (phi = 1)?

Two tests of each. The likelihood ratio takes runs as independent and estimates their dispersion
from the free fit:

    2 (S(phi_0) - S) / dispersion  ~  F(1, n - k),

and the same difference gives the corrected Akaike criterion, quasi-likelihood form (Burnham and
Anderson, Model Selection and Multimodel Inference, section 2.5). The t test divides phi - phi_0 by
the error that allows the runs of a cell to err together: of the two, believe the more cautious.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from looped.scaling.fit import FitResult
from looped.scaling.fitted import Fitted
from looped.scaling.intervals import Interval
from looped.scaling.profile import excess_at


@dataclass(frozen=True, kw_only=True)
class PhiTest:
    """The test that phi has one given value.

    Attributes:
        phi: the value.
        statistic: 2 (S(phi) - S) / dispersion.
        p: of the likelihood ratio test, runs taken as independent.
        delta_aicc: AICc with phi held there minus AICc with phi free; above 0 speaks against it.
            Null when n <= k + 1.
        p_cells: of the t test that allows for errors shared within cells; null without such an
            error.
    """

    phi: float
    statistic: float
    p: float
    delta_aicc: float | None
    p_cells: float | None


def phi_test(fit: FitResult, value: float, *, interval: Interval | None = None) -> PhiTest | None:
    """Test phi = value against a free phi; null where phi was held or cannot be told.

    Args:
        fit: with phi free.
        value: of phi under the hypothesis.
        interval: whose standard error and degrees of freedom the t test takes, if it has them;
            null = the fit's own cluster-robust error.
    """
    if fit.phi is None or "phi" in fit.held:
        return None
    fitted = Fitted.of(fit)
    n, k = fit.num_runs, fit.num_free
    statistic = float(excess_at(fitted, np.array([value]))[0])
    error, freedom = fit.stderr, fitted.freedom
    if interval is not None and interval.stderr is not None and interval.freedom is not None:
        error, freedom = interval.stderr, interval.freedom
    p_cells = None
    if error and freedom > 0:
        p_cells = float(2 * stats.t.sf(abs(fit.phi - value) / error, freedom))
    return PhiTest(
        phi=value,
        statistic=statistic,
        p=float(stats.f.sf(max(statistic, 0.0), 1, n - k)),
        delta_aicc=(statistic + aicc_penalty(n, k - 1) - aicc_penalty(n, k) if n > k + 2 else None),
        p_cells=p_cells,
    )


def aicc_penalty(n: int, k: int) -> float:
    """What AICc adds for k fitted parameters and the dispersion; n runs, more than k + 2."""
    k += 1
    return 2 * k + 2 * k * (k + 1) / (n - k - 1)
