"""From finished runs to phi, with an interval one can believe. No torch, no lightning.

    from looped.scaling import fit_law, phi_intervals, read_runs

    pool = read_runs("runs/")
    fit = fit_law(pool.of_recipe("baseline"))
    print(fit.phi, phi_intervals(fit).intervals)

`looped phi` prints what these return.
"""

from looped.scaling.exclusion import Exclusion
from looped.scaling.fit import FitResult, fit_law
from looped.scaling.intervals import Interval, PhiIntervals, phi_intervals
from looped.scaling.law import Law
from looped.scaling.runs import RunPool, read_runs
from looped.scaling.worth import Worth, worth_of_recurrences

__all__ = [
    "Exclusion",
    "FitResult",
    "Interval",
    "Law",
    "PhiIntervals",
    "RunPool",
    "Worth",
    "fit_law",
    "phi_intervals",
    "read_runs",
    "worth_of_recurrences",
]
