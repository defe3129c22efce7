"""The laws beside the plain one, in print."""

import math
from dataclasses import replace

import pytest

from looped.scaling import fit_law
from looped.scaling.nested import fit_nested
from looped.scaling.worth_report import nested_table
from tests.scaling.grids import synthetic


@pytest.fixture(scope="module")
def law():
    return fit_nested(fit_law(synthetic(noise=0.003), estimator="least_squares"), "gain_offset")


def cells_of(law) -> list[str]:
    """The row of a law, as text."""
    return [str(cell) for column in nested_table({law.form: law}).columns for cell in column.cells]


def test_a_factor_is_told_as_one(law):
    """The law holds its logarithm."""
    _, phi, factor, _ = cells_of(law)
    ends = law.intervals["log_factor"]
    assert factor == (
        f"N_eff x {math.exp(law.values['log_factor']):.3f} "
        f"[{math.exp(ends.low):.3f}, {math.exp(ends.high):.3f}]"
    )
    assert phi.startswith(f"{law.values['phi']:.3f} [")


def test_a_missing_interval_says_why(law):
    """It was "[-, -]", from which nobody could tell what to do."""
    why = "without one of the cells phi is untold"
    none = {
        name: replace(ends, low=None, high=None, why_none=why)
        for name, ends in law.intervals.items()
    }
    _, phi, factor, _ = cells_of(replace(law, intervals=none))
    assert phi == f"{law.values['phi']:.3f} (no interval: {why})"
    assert factor.endswith(f"(no interval: {why})")
