"""The law without its exponent: what each recurrence count is worth on its own.

r^phi is one curve for all recurrence counts. Giving every r >= 2 a factor of its own shows whether
the curve bends (lack of fit); fitting the plain law L = E + A N^-alpha + B D^-beta to each r alone
shows whether anything but the size changes with r.
"""

from dataclasses import dataclass

from scipy import stats

from looped.scaling.fit import FitResult, fit_law
from looped.scaling.fitted import Fitted
from looped.scaling.law import PHI, Design
from looped.scaling.minimise import minimise

FEW_STARTS = 5


@dataclass(frozen=True, kw_only=True)
class Equivalents:
    """Factors g_r in N_once + g_r N_rec, each r >= 2 with its own.

    Attributes:
        factors: g_r by r, in unique blocks per shared block.
        exponents: log g_r / log r by r: equal to phi wherever the power law holds.
        statistic: improvement of the objective over one phi, per exponent gained, in units of the
            dispersion; null with a single r >= 2, where nothing is gained.
        p: of the F test that the power law holds, runs taken as independent; null likewise.
    """

    factors: dict[int, float]
    exponents: dict[int, float]
    statistic: float | None
    p: float | None


def equivalents(fit: FitResult) -> Equivalents | None:
    """Fit one factor per recurrence count; null where phi was held or cannot be told."""
    if fit.phi is None or "phi" in fit.held:
        return None
    design = Design.of_runs(fit.runs, per_recurrence=True)
    counts = [int(name.removeprefix("phi_")) for name in design.exponent_names]
    num_free = fit.num_free - 1 + len(counts)
    freedom = fit.num_runs - num_free
    if freedom < 1:
        return None
    best = minimise(design, delta=fit.delta, held=fit.held, polish=FEW_STARTS)
    exponents = dict(zip(counts, map(float, best.theta[PHI:]), strict=True))
    statistic = p = None
    if len(counts) > 1 and fit.objective is not None:
        gained = len(counts) - 1
        improvement = 2 * (fit.objective - best.objective) / Fitted.of(fit).dispersion
        statistic = max(improvement / gained, 0.0)
        p = float(stats.f.sf(statistic, gained, freedom))
    return Equivalents(
        factors={r: float(r**phi) for r, phi in exponents.items()},
        exponents=exponents,
        statistic=statistic,
        p=p,
    )


def laws_by_recurrence(fit: FitResult) -> dict[int, FitResult]:
    """The law of each recurrence count alone, N being its unique parameters N_once + N_rec."""
    options = fit.options
    options["fix"] = options["fix"] | {"phi": 0.0}
    counts = fit.runs["recurrences"].astype(int)
    return {
        r: fit_law(fit.runs[counts == r], **options, polish=FEW_STARTS) for r in sorted(set(counts))
    }
