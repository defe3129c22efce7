"""The three laws beside the plain one, fitted from its optimum (`loop_terms.py` says which).

phi is anchored at r = 1: in the plain law whatever helps or hurts all looped models alike, such as
an injection, a norm on the state or a biased gradient, is booked as phi. A law with a place for it
shows how much of phi that was.

Two tests of each against the plain law, as for phi itself (`hypotheses.py`). The likelihood ratio
takes runs as independent and estimates their dispersion from the larger law,

    2 (S_plain - S) / (m dispersion)  ~  F(m, n - k),

with m parameters more; Hotelling's T^2 rests on the jackknife over cells (`jackknife.py`). Of the
two, believe the more cautious.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from scipy import stats

from looped.scaling.fit import FitResult
from looped.scaling.fitted import Fitted
from looped.scaling.huber import exact_objective
from looped.scaling.hypotheses import aicc_penalty
from looped.scaling.identifiability import (
    MIN_SPARE_RUNS,
    conditioning,
    form_faults,
    optimum_faults,
)
from looped.scaling.intervals import DEFAULT_KIND, Interval
from looped.scaling.jackknife import MIN_CELLS, jackknife_covariance, linear_test
from looped.scaling.law import LAW_NAMES, PHI, Design, Floats
from looped.scaling.loop_terms import NESTED, Form
from looped.scaling.many_fits import ManyFits, fit_many
from looped.scaling.minimise import SAME_OPTIMUM
from looped.scaling.starts import PHI_GRID, search_starts

STEPS = {"gains": 0.4, "offset": 0.04, "gain_offset": 0.4}
"""Starts have no step between 1 and more than one, or this much of one to either side."""

RIVAL_DISTANCE = 0.1
"""Optima further apart in a parameter of the loop, in parts of its box, are two: 0.5 of phi."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NestedFit:
    """One of the nested laws, fitted to the runs of a plain fit.

    Attributes:
        form: `gains`, `offset` or `gain_offset`.
        values: the form's own parameters by name: phi_2, phi_4, ..., or phi and offset, or phi and
            log_factor; null where the runs cannot tell.
        intervals: of each, by the delete-a-cell jackknife.
        covariance: of the values, by the jackknife; shape (q, q), null without it.
        law: E, A, alpha, B and beta at the optimum; null with too few runs to fit.
        objective: sum of rho; null likewise.
        num_free: parameters that were fitted.
        statistic: the likelihood ratio against the plain law, per parameter gained; null when the
            fit is not identifiable or gains no parameter (`gains` with a single r > 1).
        p: of that test, runs taken as independent; null likewise.
        p_cells: of the test that allows for errors shared within cells; null without a covariance
            or with too few cells.
        delta_aicc: AICc of the plain law minus that of this one; above 0 speaks for this one. Null
            with statistic, or with hardly more runs than parameters.
        faults: why the runs cannot tell, in words; empty when they can.
        num_starts: descents made; 0 with too few runs.
        num_reached: descents that ended at this optimum.
        fitted: the arrays, for further computation; null with too few runs to fit.
    """

    form: Form
    values: dict[str, float | None]
    intervals: dict[str, Interval]
    num_free: int
    faults: tuple[str, ...]
    law: dict[str, float] | None = None
    objective: float | None = None
    covariance: Floats | None = field(default=None, repr=False)
    statistic: float | None = None
    p: float | None = None
    p_cells: float | None = None
    delta_aicc: float | None = None
    num_starts: int = 0
    num_reached: int = 0
    fitted: Fitted | None = field(default=None, repr=False)

    @property
    def identifiable(self) -> bool:
        """Whether the runs can tell this law's parameters."""
        return not self.faults


def nested_fits(fit: FitResult, *, level: float = 0.95) -> dict[str, NestedFit]:
    """All three; empty where phi was held, or where no losses of these runs could tell it.

    Where it is the losses that do not tell phi, a law beside the plain one may hold all the same.

    Args:
        fit: the plain one.
        level: of the intervals.
    """
    if not fit.design_tells_phi:
        return {}
    return {form: fit_nested(fit, form, level=level) for form in NESTED}


def fit_nested(fit: FitResult, form: Form, *, level: float = 0.95) -> NestedFit:
    """Fit one nested law to the runs of a plain fit whose design tells phi."""
    design = Design.of_runs(fit.runs, form=form)
    names = design.terms.names
    free = np.array([name not in fit.held for name in design.names])
    num_free = int(free.sum())
    faults = _design_faults(fit, form, num_free=num_free)
    nothing = NestedFit(
        form=form,
        values=dict.fromkeys(names),
        intervals={name: _no_interval(level, f"{name} is not identifiable") for name in names},
        num_free=num_free,
        faults=tuple(faults),
    )
    if fit.num_runs < num_free + MIN_SPARE_RUNS:
        return nothing
    found = fit_many(design, _starts(fit, design), delta=fit.delta, free=free)
    best = int(found.objective.argmin())
    theta, objective = found.theta[best], float(found.objective[best])
    low, high = design.bounds()
    box = {n: (lo, hi) for n, lo, hi in zip(design.names, low, high, strict=True)}
    judged = conditioning(design, theta, free=free, delta=fit.delta)
    faults += optimum_faults(judged, box)
    fitted = Fitted(
        design=design,
        theta=theta,
        objective=objective,
        free=free,
        delta=fit.delta,
        cells=fit.cells,
    )
    faults += _rival_faults(found, fitted, level)
    same = objective * (1 + SAME_OPTIMUM) + exact_objective(fit.num_runs)
    optimum = replace(
        nothing,
        faults=tuple(faults),
        law={name: getattr(design.to_law(theta), name) for name in LAW_NAMES},
        objective=objective,
        num_starts=len(found.objective),
        num_reached=int((found.objective <= same).sum()),
        fitted=fitted,
    )
    if faults:
        return optimum
    covariance, intervals = _jackknife(fitted, level)
    told = replace(
        optimum,
        values=dict(zip(names, map(float, theta[PHI:]), strict=True)),
        intervals=intervals,
        covariance=covariance,
    )
    return _tested(told, fit) if num_free > fit.num_free else told


def _tested(nested: NestedFit, fit: FitResult) -> NestedFit:
    """With the tests against the plain law, which has fewer parameters."""
    assert nested.fitted is not None
    n, k, gained = fit.num_runs, nested.num_free, nested.num_free - fit.num_free
    improvement = _improvement(fit, nested.fitted)
    delta_aicc = p_cells = None
    if n > k + 2:
        delta_aicc = improvement + aicc_penalty(n, fit.num_free) - aicc_penalty(n, k)
    if nested.covariance is not None:
        p_cells = linear_test(
            nested.fitted.theta[PHI:],
            nested.covariance,
            model=plain_model(nested.form, len(nested.values)),
            cells=fit.num_cells,
        ).p
    return replace(
        nested,
        statistic=improvement / gained,
        p=float(stats.f.sf(improvement / gained, gained, n - k)),
        p_cells=p_cells,
        delta_aicc=delta_aicc,
    )


def plain_model(form: Form, num_values: int) -> Floats:
    """What the plain law allows a form's parameters: one phi for all of them, or for the first."""
    if form == "gains":
        return np.ones((num_values, 1))
    return np.eye(num_values)[:, :1]


def _design_faults(fit: FitResult, form: Form, *, num_free: int) -> list[str]:
    faults = []
    needed = num_free + MIN_SPARE_RUNS
    if fit.num_runs < needed:
        faults.append(
            f"{fit.num_runs} runs for {num_free} parameters: at least {needed} are needed"
        )
    return faults + form_faults(fit.runs, form)


def _starts(fit: FitResult, design: Design) -> Floats:
    """The plain optimum and the best plain law for each of a few phi, with three steps; (m, p)."""
    assert fit.optimum is not None
    searched = search_starts(fit.design, fit.held)
    plain = [fit.optimum.theta, *(searched[searched[:, PHI] == phi][0] for phi in PHI_GRID)]
    log_r = (
        np.log([int(name.removeprefix("phi_")) for name in design.terms.names])
        if (design.terms.form == "gains")
        else None
    )
    starts = []
    for theta in plain:
        for step in (0.0, -STEPS[design.terms.form], STEPS[design.terms.form]):
            loop = [theta[PHI], step] if log_r is None else theta[PHI] + step / log_r
            starts.append(np.concatenate([theta[:PHI], loop]))
    return np.array(starts)


def _rival_faults(found: ManyFits, fitted: Fitted, level: float) -> list[str]:
    """Another optimum far away that the likelihood allows: no interval about the best one has it.

    With r = 4 and 8 alone, a factor on the size of looped models beside phi can do so: a large
    factor with phi below 0 leaves both counts nearly the size that no factor gives them.
    """
    terms, num_runs = fitted.design.terms, len(fitted.design)
    apart = np.abs(found.theta - fitted.theta)[:, PHI:] / (terms.high - terms.low)
    ratio = 2 * (found.objective - fitted.objective) / fitted.dispersion
    limit = stats.f.ppf(level, 1, num_runs - int(fitted.free.sum()))
    rivals = found.converged & (apart.max(axis=1) > RIVAL_DISTANCE) & (ratio < limit)
    if not rivals.any():
        return []
    nearest = int(np.flatnonzero(rivals)[ratio[rivals].argmin()])
    column = int(apart[nearest].argmax())
    value, other = fitted.theta[PHI + column], found.theta[nearest, PHI + column]
    return [
        f"{terms.names[column]} = {other:.3g} describes these runs as well as {value:.3g} "
        f"(likelihood ratio F = {ratio[nearest]:.2g})"
    ]


def _improvement(fit: FitResult, fitted: Fitted) -> float:
    """2 (S_plain - S) / dispersion; 0 where the plain law is exact already."""
    assert fit.objective is not None
    if fit.objective <= exact_objective(fit.num_runs):
        return 0.0
    return max(2 * (fit.objective - fitted.objective) / fitted.dispersion, 0.0)


def _jackknife(fitted: Fitted, level: float) -> tuple[Floats | None, dict[str, Interval]]:
    """Covariance and intervals of the form's parameters; one that a cell alone tells has none."""
    names = fitted.design.terms.names
    cells = fitted.num_cells
    if cells < MIN_CELLS:
        why = f"{cells} cells, fewer than {MIN_CELLS}"
        return None, {name: _no_interval(level, why) for name in names}
    values, told = fitted.loop_values(fitted.without_each_cell())
    covariance = jackknife_covariance(values)
    reach = float(stats.t.ppf(0.5 + level / 2, cells - 1)) * np.sqrt(np.diag(covariance))
    intervals = {}
    for i, name in enumerate(names):
        if not told[:, i].all():
            intervals[name] = _no_interval(level, f"without one of the cells {name} is untold")
            continue
        value = float(fitted.theta[PHI + i])
        intervals[name] = Interval(
            kind=DEFAULT_KIND,
            level=level,
            low=value - float(reach[i]),
            high=value + float(reach[i]),
            stderr=float(np.sqrt(covariance[i, i])),
            freedom=cells - 1,
        )
    return (covariance if told.all() else None), intervals


def _no_interval(level: float, why: str) -> Interval:
    return Interval(kind=DEFAULT_KIND, level=level, low=None, high=None, why_none=why)
