"""Two recipes: the difference of phi, its joint error, and what is said of it."""

import numpy as np
import pandas as pd
import pytest

from looped.errors import UserError
from looped.report.side_by_side import SideBySide
from looped.scaling import RunPool
from looped.scaling.compare import compare
from looped.scaling.compare_report import report
from looped.scaling.law import Law
from looped.scaling.published import published_runs
from tests.scaling.grids import TRUTH, synthetic


@pytest.fixture(scope="module")
def published():
    return compare(published_runs(), "baseline", second="truncated")


def two_recipes(phi: float, *, noise: float = 0.003, shift: float = 0.0) -> RunPool:
    """The plain law's runs, and looped runs of a second recipe with another phi."""
    law = Law(**{**vars(TRUTH), "phi": phi})
    other = synthetic(law, noise=noise, seed=1, recurrences=(2, 4, 8)).assign(recipe="new")
    other["loss"] += shift
    return RunPool(pd.concat([synthetic(noise=noise, seed=0), other], ignore_index=True), [])


def test_the_published_recipes(published):
    """0.452 against 0.378 on the four budgets that both have, truncation lowering the loss."""
    assert (published.first.num_runs, published.second.num_runs) == (80, 81)
    assert published.first.phi == pytest.approx(0.4517, abs=2e-3)
    assert published.second.phi == pytest.approx(0.3784, abs=2e-3)
    assert published.delta_phi == published.second.phi - published.first.phi
    assert published.shared_cells == 4
    assert published.low < published.delta_phi < published.high
    assert set(published.loss.by_recurrence) == {2, 4, 8}
    assert published.loss.ends[1] < 0


def test_published_truncation_pays_for_being_looped(published):
    """By the plain law nothing can be told; the pair says what moved, and that phi hangs on it."""
    assert published.verdict == "not distinguishable"
    assert published.laws["offset"].differences["phi"].value == pytest.approx(0.216, abs=0.01)
    assert published.pair.moved == ("being looped",)
    assert published.pair.being_looped == "worse"
    assert published.pair.p < 0.01
    assert published.pair.phi_by_law == {
        "plain": "not distinguishable",
        "offset": "better",
        "gain_offset": "better",
    }
    assert published.pair.depends_on_law
    assert published.laws["gains"].differences["phi_2"].ends[1] < 0


def test_a_better_and_a_worse_loop_are_told():
    """The sign of the verdict: a second recipe with a higher phi has the better loop."""
    better = compare(two_recipes(0.65), "baseline", second="new", resamples=200)
    worse = compare(two_recipes(0.25), "baseline", second="new", resamples=200)
    same = compare(two_recipes(0.46), "baseline", second="new", resamples=200)
    assert (better.verdict, worse.verdict) == ("better", "worse")
    assert same.verdict == "not distinguishable"
    assert better.delta_phi == pytest.approx(0.19, abs=0.04)
    assert better.loss.value < 0 < worse.loss.value


def test_what_moved_is_named():
    """A higher phi is a change per recurrence, a loss 3 % higher when looped one for being so."""
    better = compare(two_recipes(0.65), "baseline", second="new", resamples=50)
    assert better.pair.moved == ("per recurrence",)
    assert better.pair.per_recurrence == "better"
    assert not better.pair.depends_on_law
    pool = two_recipes(0.46)
    pool.table.loc[pool.table["recipe"] == "new", "loss"] *= 1.03
    dearer = compare(pool, "baseline", second="new", resamples=50)
    assert dearer.pair.moved == ("being looped",)
    assert dearer.pair.being_looped == "worse"
    assert dearer.laws["offset"].differences["offset"].value == pytest.approx(0.03, abs=0.005)
    assert dearer.delta_phi < -0.3  # the plain law books it as phi
    same = compare(two_recipes(0.46), "baseline", second="new", resamples=50)
    assert (same.pair.moved, same.pair.differ) == ((), False)


def test_the_loss_can_fall_while_the_loop_gets_worse():
    """The paper's point: a recipe whose tokens are cheaper lowers the loss, not the value of r."""
    law = Law(**{**vars(TRUTH), "phi": 0.36})
    other = synthetic(recurrences=(2, 4, 8)).assign(recipe="new")
    other["tokens"] *= 2
    other["loss"] = law.loss(
        other["recurrences"], other["n_once"], n_rec=other["n_rec"], tokens=other["tokens"]
    ) + np.random.default_rng(1).normal(0, 0.001, len(other))
    pool = RunPool(pd.concat([synthetic(noise=0.001), other], ignore_index=True), [])
    result = compare(pool, "baseline", second="new", resamples=200)
    assert result.delta_phi == pytest.approx(-0.10, abs=0.03)
    assert result.verdict == "worse"
    assert result.loss.ends[1] < 0


def test_shared_plain_runs_are_drawn_once():
    """Noise of the plain runs moves both phis alike: drawn separately it would not cancel."""
    table = synthetic()
    plain = table["recurrences"] == 1
    table.loc[plain, "loss"] += np.random.default_rng(0).normal(0, 0.02, plain.sum())
    twin = table.assign(recipe="twin")
    widths = {}
    for shared, second in ((True, twin[~plain]), (False, twin)):
        pool = RunPool(pd.concat([table, second], ignore_index=True), [])
        options = {"estimator": "least_squares", "resamples": 200}
        result = compare(pool, "baseline", second="twin", **options)
        assert result.delta_phi == pytest.approx(0.0, abs=1e-6)
        assert result.shared_cells == (6 if shared else 0)
        widths[shared] = result.high - result.low
    assert widths[True] < 0.5 * widths[False]


def test_seeds_of_one_recipe_alone_are_warned_of():
    """Second seeds of the baseline alone moved delta phi of the measurement by 0.014."""
    pool = two_recipes(0.5)
    table = pool.table.assign(seed=0)
    again = table[(table["recipe"] == "baseline") & (table["recurrences"] < 8)].assign(seed=1)
    again["loss"] += 0.001
    uneven = RunPool(pd.concat([table, again], ignore_index=True), [])
    options = {"estimator": "least_squares", "resamples": 20}
    (warning,) = compare(uneven, "baseline", second="new", **options).warnings
    assert warning.startswith("baseline has looped runs of seed 1, new has none")
    assert compare(uneven, "new", second="baseline", **options).warnings == (warning,)
    assert compare(RunPool(table, []), "baseline", second="new", **options).warnings == ()
    plain = again[again["recurrences"] == 1]  # belong to both
    both = RunPool(pd.concat([table, plain], ignore_index=True), [])
    assert compare(both, "baseline", second="new", **options).warnings == ()


def test_the_other_estimator_is_tried(published):
    """What `--estimator least_squares` would say of phi, up to the starts that it descends from."""
    squares = compare(published_runs(), "baseline", second="truncated", estimator="least_squares")
    tried = published.other_estimator
    assert tried.name == "least_squares"
    assert tried.delta_phi.value == pytest.approx(squares.delta_phi, abs=1e-5)
    assert tried.delta_phi.ends == pytest.approx(squares.jackknife, abs=1e-5)
    assert (tried.verdict, tried.disagrees) == ("not distinguishable", False)
    assert squares.other_estimator.delta_phi.value == pytest.approx(published.delta_phi, abs=1e-5)


def test_estimators_that_disagree():
    """Runs far off, which Huber's estimator passes over and least squares follows."""
    pool = two_recipes(0.65)
    table = pool.table.copy()
    far_off = table.index[(table["recipe"] == "new") & (table["recurrences"] == 8)][:3]
    table.loc[far_off, "loss"] += 0.3
    result = compare(RunPool(table, []), "baseline", second="new", resamples=200)
    assert (result.verdict, result.other_estimator.verdict) == ("better", "not distinguishable")
    assert result.other_estimator.disagrees
    found = result.other_estimator.delta_phi.value
    assert (
        f"the verdict on phi depends on the estimator: huber better ({result.delta_phi:+.3f}), "
        f"least_squares not distinguishable ({found:+.3f})"
    ) in report(result, "baseline", second="new")
    (row,) = SideBySide(against="baseline", comparisons={"new": result}).rows
    names = [name for name, _, _ in row["by_choice"]["estimator"]]
    assert names == ["huber", "least squares"]


def test_the_interval_is_reproducible_and_follows_the_level(published):
    """Same seed, same ends; a lower level, a narrower interval."""
    again = compare(published_runs(), "baseline", second="truncated")
    assert (again.low, again.high) == (published.low, published.high)
    narrow = compare(published_runs(), "baseline", second="truncated", level=0.5)
    assert published.low < narrow.low < narrow.high < published.high
    assert published.jackknife[0] < narrow.jackknife[0]


def test_runs_that_cannot_tell_phi_give_no_difference():
    """A recipe with one width cannot be judged: null and unknown, not a number."""
    pool = two_recipes(0.5)
    pool = RunPool(
        pool.table[(pool.table["recipe"] != "new") | (pool.table["recurrences"] == 2)], []
    )
    pool.table.loc[pool.table["recipe"] == "new", "loss"] = np.linspace(2, 9, 24)
    result = compare(pool, "baseline", second="new", resamples=50)
    assert not result.second.identifiable
    assert (result.delta_phi, result.low, result.jackknife) == (None, None, None)
    assert (result.verdict, result.resamples) == ("unknown", 0)


def test_mistakes_are_named():
    """The same recipe twice, one that is not there, and recipes that never met."""
    pool = published_runs()
    with pytest.raises(UserError, match="cannot be compared with itself"):
        compare(pool, "baseline", second="baseline")
    with pytest.raises(UserError, match="no run of recipe 'other'"):
        compare(pool, "baseline", second="other")
    with pytest.raises(UserError, match="level 2 is not"):
        compare(pool, "baseline", second="truncated", level=2)
    table = synthetic(budgets=(1e18, 1e19))
    apart = table[table["recurrences"] > 1].assign(recipe="new", level="3e+20 FLOPs")
    with pytest.raises(UserError, match=r"no budget .* with looped runs in common"):
        compare(RunPool(pd.concat([table, apart]), []), "baseline", second="new")
