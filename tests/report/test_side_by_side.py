"""Recipes side by side: what the comparison says, and its figure."""

import pytest

from looped.report.recipes_figure import recipes_figure
from looped.report.side_by_side import SideBySide
from looped.scaling.analysis import analyse
from looped.scaling.compare import compare
from looped.scaling.published import published_runs


@pytest.fixture(scope="module")
def found():
    return compare(published_runs(), "baseline", second="truncated", resamples=100)


def test_the_row_holds_the_comparison(found):
    """The verdict without its label, the changes with their intervals, a minus that is one."""
    side = SideBySide(against="baseline", comparisons={"truncated": found})
    (row,) = side.rows
    assert row["verdict"].startswith("being looped costs more in truncated")
    plain = dict(row["plain"])
    assert plain["change in \u03c6"] == f"\u2212{-found.delta_phi:.3f}"
    assert plain["best loss at equal budget"] == f"\u2212{-found.loss.value:.4f}"
    low, high = found.loss.ends
    assert plain["95 %, between budgets"] == f"\u2212{-low:.4f} to \u2212{-high:.4f}"
    low, high = found.jackknife
    assert plain["95 %, jackknife"] == f"\u2212{-low:.3f} to +{high:.3f}"


def test_the_pair_and_the_law_are_told(found):
    """On the published runs the verdict on phi depends on the law: the page must not hide it."""
    (row,) = SideBySide(against="baseline", comparisons={"truncated": found}).rows
    offset = found.laws["offset"].differences["offset"]
    assert dict(row["pair"])["change in the offset (log L)"] == f"+{offset.value:.4f}"
    by_law = row["by_choice"]["law"]
    assert [law for law, _, _ in by_law] == ["plain", "offset", "gain offset"]
    assert {verdict for _, verdict, _ in by_law} == {"not distinguishable", "better"}


def test_what_was_not_compared_says_why():
    """First, so that it is not overlooked."""
    side = SideBySide(against="a", why_not={"b": "no budget in common."})
    assert side.rows == [{"recipe": "b", "why_not": "no budget in common"}]


def test_the_figure_shows_the_same_numbers(found):
    """A row per recipe; the reference at 0 in every panel of changes."""
    pool = published_runs()
    analyses = {
        name: analyse(pool.of_recipe(name), resamples=10, estimator="least_squares")
        for name in pool.recipes
    }
    axes = recipes_figure(analyses, {"truncated": found}, against="baseline").axes
    assert [tick.get_text() for tick in axes[0].get_yticklabels()] == ["baseline", "truncated"]
    marks = [
        [tuple(line.get_xydata()[0]) for line in ax.get_lines() if line.get_marker() == "o"]
        for ax in axes
    ]
    offset = found.laws["offset"].differences["offset"].value
    assert marks[0] == [(analyses[name].fit.phi, place) for place, name in enumerate(analyses)]
    assert marks[1:] == [
        [(0.0, 0.0), (value, 1.0)] for value in (found.delta_phi, offset, found.loss.value)
    ]
    assert axes[0].get_ylim()[0] > axes[0].get_ylim()[1]  # the first recipe on top


def test_a_recipe_that_was_not_compared_has_its_phi_alone():
    """Its row stays, with nothing in the panels of changes."""
    pool = published_runs()
    analysis = analyse(pool.of_recipe("baseline"), resamples=10, estimator="least_squares")
    axes = recipes_figure({"a": analysis, "b": analysis}, {}, against="a").axes
    marks = [[line for line in ax.get_lines() if line.get_marker() == "o"] for ax in axes]
    assert [len(lines) for lines in marks] == [2, 1, 1, 1]
