"""Whether one exponent describes the worths of all recurrence counts; if not, a step or a bend.

Two ways to leave the line r^phi are told apart, on the exponents phi_r = log g_r / log r of free
worths (`worth.py`) with their joint jackknife covariance:

    step    log g_r = step + phi log r for r > 1: being looped at all costs (or gives) something,
            and from there on every recurrence is worth the same again
    bend    anything else: recurrences lose or gain worth as they become more

One exponent is rejected at 1 - level, and only where both tests reject it: the likelihood ratio,
which takes runs as independent, and the one that allows for errors shared within cells. A step need
not be one of worth: it also stands where a law with a step in the loss or in the effective size
(`offset`, `gain_offset`) has no higher AICc than free worths.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from looped.scaling.fit import FitResult
from looped.scaling.jackknife import LinearTest, linear_test
from looped.scaling.law import PHI, Floats
from looped.scaling.nested import NestedFit

Verdict = Literal["one exponent", "step", "bend", "step or bend", "untested", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What the worths look like.

    Attributes:
        verdict: `one exponent` where both tests let it stand; else `step`, `bend`, or
            `step or bend` where two counts cannot tell which; `untested` with a single r > 1;
            `unknown` with too few cells, or where one exponent might do but cannot be told.
        p_step: of the test that a step and one exponent describe the worths, errors shared within
            cells; null with fewer than three worths, or too few cells.
        sentence: the same in words.
    """

    verdict: Verdict
    p_step: float | None
    sentence: str


def shape_of(fit: FitResult, nested: Mapping[str, NestedFit], *, level: float) -> Shape:
    """Judge the worths.

    Args:
        fit: the plain one.
        nested: the laws beside it; that of free worths must have been told.
        level: the tests reject at 1 - level.
    """
    found = nested["gains"]
    assert found.fitted is not None
    counts = [int(name.removeprefix("phi_")) for name in found.values]
    exponents = found.fitted.theta[PHI:]
    step = _step_in_worth(found, counts, cells=fit.num_cells)
    verdict = _verdict(fit, nested, step, level=level)
    return Shape(
        verdict=verdict,
        p_step=step.p if step else None,
        sentence=_sentence(fit, nested, verdict, step, (counts, exponents), level=level),
    )


def _step_in_worth(found: NestedFit, counts: list[int], *, cells: int) -> LinearTest | None:
    """The best step with its exponent, (phi, log step), and whether it describes the worths."""
    if len(counts) < 3 or found.covariance is None or found.fitted is None:
        return None
    inverse = 1 / np.log(np.array(counts, dtype=float))
    model = np.column_stack([np.ones(len(counts)), inverse])  # phi_r = phi + step / log r
    return linear_test(found.fitted.theta[PHI:], found.covariance, model=model, cells=cells)


def _stands(step: LinearTest | None, level: float) -> bool:
    return step is not None and step.p is not None and step.p >= 1 - level


def _better_step(nested: Mapping[str, NestedFit]) -> NestedFit | None:
    """The law with a step of lowest AICc, where that is not above the one of free worths."""
    free = nested["gains"].delta_aicc
    steps = [law for form, law in nested.items() if form != "gains" and law.delta_aicc is not None]
    if free is None or not steps:
        return None
    best = max(steps, key=lambda law: law.delta_aicc or 0.0)
    return best if best.delta_aicc is not None and best.delta_aicc >= free else None


def _verdict(
    fit: FitResult, nested: Mapping[str, NestedFit], step: LinearTest | None, *, level: float
) -> Verdict:
    found = nested["gains"]
    if found.p is None:
        return "untested"
    if found.p_cells is None:
        return "unknown"
    if max(found.p, found.p_cells) >= 1 - level:
        return "one exponent" if fit.phi is not None else "unknown"
    if step is None:  # two counts: free worths and every law with a step have as many parameters
        return "step or bend"
    return "step" if _stands(step, level) or _better_step(nested) else "bend"


def _sentence(
    fit: FitResult,
    nested: Mapping[str, NestedFit],
    verdict: Verdict,
    step: LinearTest | None,
    worths: tuple[list[int], Floats],
    *,
    level: float,
) -> str:
    found = nested["gains"]
    if verdict == "untested":
        return f"with r = {worths[0][0]} alone above 1, any worth is r^phi: nothing to test"
    if found.p_cells is None:
        return "too few cells to test whether one exponent describes them"
    if verdict == "unknown":
        return "one exponent may describe them, but these runs cannot tell it"
    assert found.p is not None
    p = f"p = {max(found.p, found.p_cells):.2g}"
    if verdict == "one exponent":
        return f"one exponent describes them: r^{fit.phi:.3f} (lack of fit {p})"
    rejected = f"one exponent does not describe them ({p})"
    if verdict == "step":
        assert step is not None
        told = _told(step, nested, counts=len(worths[0]), level=level)
        return f"{rejected}, a step between 1 and more than one does: {told}"
    if verdict == "bend" and step is not None:
        return (
            f"{rejected}, nor does a step between 1 and more than one (p = {step.p:.2g}): they "
            f"bend, with exponents {_slopes(*worths)}"
        )
    return (
        f"{rejected}; two recurrence counts cannot tell a step between 1 and more than one from a "
        f"bend: exponents {_slopes(*worths)}"
    )


def _told(step: LinearTest, nested: Mapping[str, NestedFit], *, counts: int, level: float) -> str:
    """The step in words: the one of worth where it stands, unless one of the loss fits better.

    A step of worth has `counts` - 2 parameters fewer than free worths and fits no better than they
    do, so its AICc lies at most twice that number above theirs.
    """
    loss, free = nested["offset"], nested["gains"].delta_aicc
    if loss.delta_aicc and free is not None and loss.delta_aicc > free + 2 * (counts - 2):
        return _step_of_law(loss)
    if _stands(step, level):
        return _step_of_worth(step)
    better = _better_step(nested)
    assert better is not None
    return _step_of_law(better)


def _step_of_worth(step: LinearTest) -> str:
    phi, log_step = map(float, step.coefficients)
    return (
        f"being looped {_changes(log_step)} a factor {np.exp(log_step):.2f} of worth, from there "
        f"on it grows as r^{phi:.3f} (p = {step.p:.2g})"
    )


def _step_of_law(law: NestedFit) -> str:
    phi, size = law.values.values()
    assert phi is not None
    assert size is not None
    if law.form == "offset":
        change = f"{'costs' if size > 0 else 'saves'} {100 * abs(np.expm1(size)):.1f} % of the loss"
    else:
        change = f"{_changes(size)} a factor {np.exp(size):.2f} of effective size"
    return f"being looped {change}, from there on recurrences are worth r^{phi:.3f}"


def _changes(logarithm: float) -> str:
    return "costs" if logarithm < 0 else "gives"


def _slopes(counts: list[int], exponents: Floats) -> str:
    """Exponents between neighbouring recurrence counts: `0.39 from r = 1 to 2, ...`."""
    log_r = np.log([1, *counts])
    log_worth = np.append(0.0, exponents * log_r[1:])
    slopes = np.diff(log_worth) / np.diff(log_r)
    return ", ".join(
        f"{slope:.2f} from r = {low} to {high}"
        for slope, (low, high) in zip(slopes, pairwise([1, *counts]), strict=True)
    )
