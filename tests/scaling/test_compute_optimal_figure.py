"""The figure of the best loss that compute buys."""

import numpy as np
import pytest

from looped.scaling.analysis import analyse
from looped.scaling.compute_optimal_figure import compute_optimal_figure
from looped.scaling.equivalence import Layout, allocate
from looped.scaling.figure_style import palette_of
from tests.scaling.grids import published, synthetic


def figure_of(runs):
    analysis = analyse(runs, resamples=10)
    return analysis, compute_optimal_figure(analysis, palette=palette_of(runs["recurrences"]))


def test_the_curve_is_the_best_that_the_law_allows():
    """Against the optimum over exact layouts of the paper, where it lies inside the curve."""
    analysis, figure = figure_of(published("baseline"))
    curves = [line for line in figure.axes[0].get_lines() if len(line.get_xdata()) == 100]
    assert len(curves) == 4
    for r, line in zip((1, 2, 4, 8), curves, strict=True):
        budget, loss = np.asarray(line.get_data())
        middle = 50
        best = allocate(analysis.fit.law, Layout(recurrences=r), budget=budget[middle])
        assert loss[middle] == pytest.approx(best.loss, abs=1e-3)


def test_minima_stand_for_their_runs():
    """24 stars at the published budgets; no run is drawn where its parabola has a minimum."""
    _, figure = figure_of(published("baseline"))
    lines = figure.axes[0].get_lines()
    stars = [line for line in lines if line.get_marker() == "*"]
    assert len(stars) == 24
    assert float(stars[0].get_xdata()[0]) == pytest.approx(4.64e17, rel=1e-2)
    runs = [line for line in lines if line.get_linestyle() == "None" and line not in stars]
    assert sum(len(line.get_xdata()) for line in runs) == 0


def test_runs_of_equal_tokens_are_drawn_themselves():
    """They have no minimum at equal budget."""
    runs = synthetic(token_counts=(1e9, 2e9, 4e9)).assign(flops_per_token=1e9)
    _, figure = figure_of(runs)
    lines = figure.axes[0].get_lines()
    assert not [line for line in lines if line.get_marker() == "*"]
    assert sum(len(line.get_xdata()) for line in lines if line.get_linestyle() == "None") == 48


def test_without_flops_there_is_no_figure():
    """A table need not tell them."""
    assert figure_of(synthetic())[1] is None
