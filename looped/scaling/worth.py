"""What each recurrence count is worth.

The worth of r is g_r in N_once + g_r N_rec, in blocks: 1 at r = 1 by definition, r^phi by the plain
law, free for every r >= 2 here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from looped.scaling.fit import FitResult
from looped.scaling.nested import NestedFit, nested_fits
from looped.scaling.worth_shape import Verdict, shape_of


@dataclass(frozen=True, kw_only=True)
class Gain:
    """What r passes through the recurrent block are worth.

    Attributes:
        value: g_r, in blocks.
        low: lower end of its interval; null when the runs give none.
        high: upper end; null likewise.
        level: of the interval.
        exponent: log g_r / log r: phi wherever one exponent holds.
        stderr: of the exponent, by the jackknife; null without an interval.
        why_none: why there is no interval; empty otherwise.
    """

    value: float
    low: float | None
    high: float | None
    level: float
    exponent: float
    stderr: float | None
    why_none: str


@dataclass(frozen=True, kw_only=True)
class Worth:
    """The worth of every recurrence count above 1, and its shape.

    Attributes:
        phi: of the plain law; null where that cannot be told although the worths can.
        gains: by r, ascending; r = 1 is worth 1 by definition and is not among them.
        statistic: of the likelihood ratio against one exponent, per exponent gained; null with a
            single r > 1.
        p: of that test, runs taken as independent; null likewise.
        p_cells: of the test that allows for errors shared within cells; null with too few cells.
        p_step: of the test that a step and one exponent describe them (`worth_shape.py`); null with
            fewer than three of them, or too few cells.
        verdict: `one exponent`, `step`, `bend` and so on, as in `worth_shape.py`.
        sentence: the same in words.
    """

    phi: float | None
    gains: dict[int, Gain]
    statistic: float | None
    p: float | None
    p_cells: float | None
    p_step: float | None
    verdict: Verdict
    sentence: str


def worth_of_recurrences(fit: FitResult, *, level: float = 0.95) -> Worth | None:
    """The worth of the recurrence counts of a fit's runs.

    Args:
        fit: the plain one, `fit_law(runs)`.
        level: of the intervals; the tests reject at 1 - level.

    Returns:
        Null where phi was held, or the runs cannot carry a factor for each r.
    """
    return worth_of(fit, nested_fits(fit, level=level), level=level)


def worth_of(fit: FitResult, nested: Mapping[str, NestedFit], *, level: float) -> Worth | None:
    """As `worth_of_recurrences`, of laws that have been fitted already at this level."""
    found = nested.get("gains")
    if found is None or not found.identifiable:
        return None
    worths = {int(name.removeprefix("phi_")): _gain(found, name) for name in found.values}
    shape = shape_of(fit, nested, level=level)
    return Worth(
        phi=fit.phi,
        gains=worths,
        statistic=found.statistic,
        p=found.p,
        p_cells=found.p_cells,
        p_step=shape.p_step,
        verdict=shape.verdict,
        sentence=shape.sentence,
    )


def _gain(found: NestedFit, name: str) -> Gain:
    r, exponent = int(name.removeprefix("phi_")), found.values[name]
    assert exponent is not None
    interval = found.intervals[name]
    return Gain(
        value=r**exponent,
        low=None if interval.low is None else r**interval.low,
        high=None if interval.high is None else r**interval.high,
        level=interval.level,
        exponent=exponent,
        stderr=interval.stderr,
        why_none=interval.why_none,
    )
