"""What the interactive figure is given."""

import json

import numpy as np
import pytest

from looped.report.explorer import explorer_data
from looped.scaling.analysis import analyse
from looped.scaling.figure_style import palette_of
from tests.scaling.grids import published, synthetic


def data_of(runs, **options):
    analysis = analyse(runs, resamples=10, **options)
    data = explorer_data({"a": analysis}, palette=palette_of(runs["recurrences"]))
    return analysis, data and data["recipes"]["a"]


def test_runs_of_equal_budgets():
    """The second slider sets FLOPs; all 24 minima stand at budgets that it can be set to."""
    analysis, recipe = data_of(published("baseline"))
    assert recipe["by"] == "flops"
    assert recipe["levels"] == pytest.approx([4.64e17, 1e18, 2.15e18, 4.64e18, 1e19, 2.15e19], 0.01)
    assert len(recipe["minima"]) == 24
    assert {minimum["level"] for minimum in recipe["minima"]} <= set(recipe["levels"])
    assert recipe["law"]["phi"] == analysis.fit.phi
    json.dumps(recipe, allow_nan=False)


def test_runs_of_equal_tokens():
    """The second slider sets tokens; nothing has a minimum."""
    _, recipe = data_of(synthetic(token_counts=(1e9, 2e9, 4e9)))
    assert (recipe["by"], recipe["levels"]) == ("tokens", [1e9, 2e9, 4e9])
    assert recipe["minima"] == []
    assert recipe["families"]["4"]["flops_per_token"] is None


def test_the_phi_slider_reaches_its_ends_in_whole_steps():
    """From 0 to 1 at least, and beyond the fitted value wherever it lies."""
    for phi in (-0.3, 0.46, 1.2):
        _, recipe = data_of(synthetic(token_counts=(1e9, 2e9, 4e9)), fix={"phi": phi})
        slider = recipe["phi"]
        assert phi - slider["below"] * slider["step"] <= min(0, phi - 0.1) + 1e-9
        assert phi + slider["above"] * slider["step"] >= max(1, phi + 0.1) - 1e-9


def test_runs_of_unknown_budget_are_shown_at_none():
    """In a grid of budgets they stay in the residual, but at no place of the slider."""
    runs = published("baseline")
    odd = runs.index[:2]
    runs = runs.assign(level=runs["level"].where(~runs.index.isin(odd), "1e+09 tokens"))
    _, recipe = data_of(runs)
    assert recipe["runs"]["level"][:2] == [None, None]
    assert len(recipe["runs"]["loss"]) == 116


def test_without_a_law_there_is_nothing_to_move():
    """Too few runs, or a single size of each recurrence count."""
    assert data_of(synthetic().iloc[:3])[1] is None
    runs = synthetic()
    assert data_of(runs[runs["width"] == 768])[1] is None
    assert np.isfinite(data_of(synthetic())[0].fit.rmse)
