"""The worth of each recurrence count, and the shape that is read off it."""

import re

import numpy as np
import pytest

from looped.scaling import fit_law
from looped.scaling.nested import fit_nested
from looped.scaling.worth import worth_of_recurrences
from tests.scaling.grids import TRUTH, published, synthetic


def worth_with(factors: dict[int, float], *, noise: float = 0.003, seed: int = 0, **options):
    """The worth that is read off runs whose recurrence counts are worth these factors."""
    table = synthetic(recurrences=(1, *factors), **options)
    gain = table["recurrences"].map({1: 1.0} | factors)
    exact = TRUTH.loss_of_size(table["n_once"] + gain * table["n_rec"], table["tokens"])
    table["loss"] = exact + np.random.default_rng(seed).normal(0, noise, len(table))
    return worth_of_recurrences(fit_law(table, estimator="least_squares"))


def test_the_published_worths():
    """Issue 8's table to 0.01, each inside its own interval; truncation is a step, not a bend."""
    baseline = worth_of_recurrences(fit_law(published("baseline")))
    truncated = worth_of_recurrences(fit_law(published("truncated")))
    for worth, figures in ((baseline, (1.31, 1.99, 2.50)), (truncated, (0.86, 1.50, 2.15))):
        assert [gain.value for gain in worth.gains.values()] == pytest.approx(figures, abs=0.01)
        assert list(worth.gains) == [2, 4, 8]
        assert all(gain.low < gain.value < gain.high for gain in worth.gains.values())
    assert truncated.verdict == "step"
    assert truncated.gains[2].high < 1
    assert "being looped costs a factor 0.56 of worth, from there on it grows as r^0.657" in (
        truncated.sentence
    )
    assert baseline.verdict == "bend"
    assert "0.60 from r = 2 to 4" in baseline.sentence


def test_worths_are_powers_of_their_exponents():
    """The interval of g_r is that of its exponent, carried over: never below 0, not symmetric."""
    fit = fit_law(published("baseline"))
    law = fit_nested(fit, "gains", level=0.8)
    for r, gain in worth_of_recurrences(fit, level=0.8).gains.items():
        assert gain.exponent == law.values[f"phi_{r}"]
        assert gain.value == r**gain.exponent
        assert gain.low == r ** law.intervals[f"phi_{r}"].low
        assert gain.level == 0.8


def test_a_power_law_is_called_one():
    """Where r^phi made the data, each count alone gives the same phi, and the sentence says so."""
    worth = worth_with({r: r**TRUTH.phi for r in (2, 4, 8)})
    for gain in worth.gains.values():
        assert gain.exponent == pytest.approx(TRUTH.phi, abs=0.06)
    assert worth.p > 0.01
    assert worth.verdict == "one exponent"
    assert worth.sentence.startswith(f"one exponent describes them: r^{worth.phi:.3f} (lack of")


def test_a_bend_is_called_a_bend():
    """R = 8 worth no more than r = 4: neither one exponent nor a step at r = 1 gives that."""
    worth = worth_with({2: 1.4, 4: 2.0, 8: 2.0})
    assert worth.p < 1e-6
    assert worth.gains[8].value == pytest.approx(2.0, rel=0.1)
    assert worth.verdict == "bend"
    assert "they bend" in worth.sentence


def test_a_step_is_called_a_step():
    """Being looped at all costs a third, from there on r^0.6: the two numbers come out."""
    worth = worth_with({r: 0.67 * r**0.6 for r in (2, 4, 8, 16)})
    assert worth.verdict == "step"
    assert worth.p_step >= 0.05
    told = re.search(
        r"being looped costs a factor (\S+) of worth.* grows as r\^(\S+)", worth.sentence
    )
    assert float(told[1]) == pytest.approx(0.67, abs=0.06)
    assert float(told[2]) == pytest.approx(0.6, abs=0.06)
    assert "gives a factor" in worth_with({r: 1.5 * r**0.3 for r in (2, 4, 8, 16)}).sentence


def test_a_step_in_the_loss_is_a_step():
    """An offset of 3 % bends the worths, since no factor of a size makes it; it is no bend."""
    table = synthetic()
    noise = np.random.default_rng(0).normal(0, 0.003, len(table))
    table["loss"] = table["loss"] * np.exp(0.03 * (table["recurrences"] > 1)) + noise
    worth = worth_of_recurrences(fit_law(table, estimator="least_squares"))
    assert worth.p_step < 1e-3
    assert worth.verdict == "step"
    assert "being looped costs 3.0 % of the loss" in worth.sentence
    assert "worth r^0.46" in worth.sentence or "worth r^0.45" in worth.sentence


def offset_worth(offset: float, *, recurrences: tuple[int, ...]):
    """The worth that is read off runs whose only deviation is an offset on log L."""
    table = synthetic(recurrences=(1, *recurrences))
    noise = np.random.default_rng(0).normal(0, 0.003, len(table))
    table["loss"] = table["loss"] * np.exp(offset * (table["recurrences"] > 1)) + noise
    return worth_of_recurrences(fit_law(table, estimator="least_squares"))


def test_the_step_that_fits_best_is_told():
    """The worths alone would also pass for a step of worth, with another exponent."""
    worth = offset_worth(0.01, recurrences=(2, 4, 8))
    assert worth.p_step >= 0.05
    assert "being looped costs 1.0 % of the loss" in worth.sentence
    told = float(re.search(r"worth r\^(\S+)", worth.sentence)[1])
    assert told == pytest.approx(TRUTH.phi, abs=0.03)


def test_two_worths_are_no_step_however_well_one_fits():
    """With two counts free worths have as many parameters: the noise would decide."""
    assert offset_worth(0.02, recurrences=(2, 8)).verdict == "step or bend"


def test_two_worths_cannot_tell_a_step_from_a_bend():
    """Any two lie on a line: the deviation is reported, its shape is not."""
    worth = worth_with({4: 1.0, 8: 2.4})
    assert worth.verdict == "step or bend"
    assert worth.p_step is None
    assert "two recurrence counts cannot tell a step" in worth.sentence


def test_a_single_worth_is_not_tested():
    """One recurrence count above 1 is r^phi whatever it is."""
    worth = worth_with({4: 1.9})
    assert (worth.verdict, worth.p, worth.p_cells) == ("untested", None, None)
    assert worth.gains[4].exponent == pytest.approx(worth.phi, abs=1e-6)
    assert worth.gains[4].low < 1.9 < worth.gains[4].high


def test_too_few_cells_are_no_verdict():
    """Three recurrence counts above 1 in a cell each: their errors cannot be told."""
    table = synthetic(noise=0.003, widths=(512, 640, 768, 896, 1024, 1280), budgets=(1e18, 1e19))
    table = table[(table["recurrences"] == 1) | (table["level"] == "1e+19 FLOPs")]
    worth = worth_of_recurrences(fit_law(table, estimator="least_squares"))
    assert (worth.verdict, worth.p_cells) == ("unknown", None)
    assert worth.gains[2].low is None
    assert worth.sentence == "too few cells to test whether one exponent describes them"


def test_without_phi_there_is_no_worth():
    """A phi that was held, or that no losses of these runs could tell, has no worths beside it."""
    assert worth_of_recurrences(fit_law(published("baseline"), fix={"phi": 0.5})) is None
    assert worth_of_recurrences(fit_law(synthetic(recurrences=(4,)))) is None
