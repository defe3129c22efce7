"""The tables of the page."""

import dataclasses

import pytest

from looped.report.tables import recurrence_rows, runs_table
from looped.scaling.analysis import analyse
from looped.scaling.published import published_runs


@pytest.fixture(scope="module")
def pool():
    return published_runs()


@pytest.fixture(scope="module")
def analyses(pool):
    return {
        name: analyse(pool.of_recipe(name), resamples=10, estimator="least_squares")
        for name in pool.recipes
    }


def test_every_run_has_a_row_with_its_residual(pool, analyses):
    """The residual of its own recipe's law; shared plain runs say in which fits they are."""
    table = runs_table(pool.table, analyses)
    assert len(table.rows) == 177
    column = {head: place for place, head in enumerate(table.heads)}
    by_run = {row[0].text: row for row in table.rows}
    for name, analysis in analyses.items():
        fit = analysis.fit
        for run, residual in zip(fit.runs.to_dict("records"), fit.residuals_nats, strict=True):
            row = by_run[run["run"]]
            assert name in row[column["fitted in"]].text.split(", ")
            if run["recipe"] == name:
                assert row[column["residual (nats)"]].value == pytest.approx(residual)
    shared = [row for row in table.rows if row[column["fitted in"]].text == "baseline, truncated"]
    assert {row[column["r"]].value for row in shared} == {1.0}
    assert len(shared) == 20


def test_columns_that_nobody_fills_are_left_out(pool, analyses):
    """The published table has no seeds."""
    assert "seed" not in runs_table(pool.table, analyses).heads
    seeded = pool.table.assign(seed=0)
    assert "seed" in runs_table(seeded, {}).heads


def test_a_run_that_no_fit_uses_says_so(pool, analyses):
    """With --recipe, or outside of a recipe's budgets."""
    table = runs_table(pool.table, {"truncated": analyses["truncated"]})
    column = table.heads.index("fitted in")
    assert {row[column].text for row in table.rows} == {"truncated", "no fit"}


def test_worths_stand_beside_the_residuals(analyses):
    """One row for each count; the plain model is worth one block by definition."""
    rows = recurrence_rows(analyses["baseline"])
    assert [row["recurrences"] for row in rows] == ["1", "2", "4", "8"]
    gains = analyses["baseline"].worth.gains
    assert [row["worth"] for row in rows] == ["", *(f"{gain.value:.2f}" for gain in gains.values())]
    assert rows[1]["interval"] == f"{gains[2].low:.2f} to {gains[2].high:.2f}"


def test_a_negative_exponent_has_a_minus(analyses):
    """As every other number of the page, and no hyphen."""
    analysis = analyses["baseline"]
    gain = dataclasses.replace(analysis.worth.gains[2], value=0.859, exponent=-0.219)
    worth = dataclasses.replace(analysis.worth, gains={2: gain})
    rows = recurrence_rows(dataclasses.replace(analysis, worth=worth))
    assert rows[1]["exponent"] == "\u22120.219"
