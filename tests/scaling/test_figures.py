"""The figures: every one is drawn, and no legend invents a recurrence count."""

import matplotlib.image
import pytest
from matplotlib.colors import to_hex

from looped.scaling import fit_law
from looped.scaling.analysis import analyse
from looped.scaling.figure_style import palette_of
from looped.scaling.figures import (
    INTERVAL_SHADE,
    effective_size_figure,
    isoflop_figure,
    phi_figure,
    recipe_figures,
    residual_figure,
    write_figures,
)
from tests.scaling.grids import published, synthetic

PALETTE = palette_of([1, 2, 4, 8])


@pytest.fixture(scope="module")
def analysis():
    return analyse(published("baseline"), resamples=200)


def test_every_figure_is_written(analysis, tmp_path):
    """Four files per recipe, each a picture."""
    paths = list(write_figures({"baseline": analysis}, tmp_path))
    assert [path.name for path in paths] == [
        "baseline-isoflop.png",
        "baseline-effective-size.png",
        "baseline-residuals.png",
        "baseline-phi.png",
    ]
    for path in paths:
        assert matplotlib.image.imread(path).std() > 0.01


def test_recurrence_counts_are_categories(analysis):
    """Seaborn takes integers for a scale and puts 3 and 6 into the legend of 1, 2, 4, 8."""
    counts = ["r = 1", "r = 2", "r = 4", "r = 8"]
    for draw, further in (
        (isoflop_figure, ["minimum"]),
        (effective_size_figure, ["$E + A N_{eff}^{-\\alpha}$"]),
        (residual_figure, []),
    ):
        (legend,) = draw(analysis.fit, palette=PALETTE).legends
        assert [text.get_text() for text in legend.get_texts()] == counts + further


def test_no_legend_covers_data(analysis):
    """Every legend stands beside the axes, in every figure."""
    for kind, figure in recipe_figures(analysis, palette=PALETTE).items():
        figure.draw_without_rendering()
        (legend,) = figure.legends
        box = legend.get_window_extent()
        for ax in figure.axes:
            assert not ax.get_legend(), kind
            assert not box.overlaps(ax.get_window_extent()), kind


def test_one_colour_and_marker_for_each_count_everywhere(analysis):
    """The marks of r = 4 are the same in the figures that show runs."""
    expected = to_hex(PALETTE[4].colour)
    for figure in (
        isoflop_figure(analysis.fit, palette=PALETTE),
        residual_figure(analysis.fit, palette=PALETTE),
    ):
        colours = {
            to_hex(colour)
            for ax in figure.axes
            for marks in ax.collections
            for colour in marks.get_facecolors()
        }
        assert expected in colours
        assert colours <= {to_hex(look.colour) for look in PALETTE.values()}


def test_the_axis_says_what_levels_have_in_common(analysis):
    """Budgets without their unit on each tick, the unit on the axis."""
    ax = residual_figure(analysis.fit, palette=PALETTE).axes[0]
    assert ax.get_xlabel() == "training budget (FLOPs)"
    assert ax.get_xticklabels()[0].get_text() == "4.64\u00d710\u00b9\u2077"
    tokens = fit_law(synthetic(token_counts=(1e9, 2e9, 4e9)), polish=1)
    ax = residual_figure(tokens, palette=PALETTE).axes[0]
    assert ax.get_xlabel() == "training tokens"
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1G", "2G", "4G"]


def test_the_minima_are_where_the_parabolas_say(analysis):
    """24 stars, the first at the published minimum of its cell."""
    stars = [
        line
        for ax in isoflop_figure(analysis.fit, palette=PALETTE).axes
        for line in ax.get_lines()
        if line.get_marker() == "*"
    ]
    assert len(stars) == 24
    (x,), (y,) = stars[0].get_data()
    assert x == pytest.approx(67800356, rel=1e-3)
    assert y == pytest.approx(2.852291, abs=1e-4)


def test_the_phi_figure_shades_the_reported_interval(analysis):
    """The figure and the headline must show the same interval."""
    interval = analysis.intervals.intervals[analysis.kind]
    upper, lower = phi_figure(analysis).axes
    for ax in (upper, lower):
        (span,) = [patch for patch in ax.patches if patch.get_alpha() == INTERVAL_SHADE]
        assert span.get_x() == pytest.approx(interval.low)
        assert span.get_x() + span.get_width() == pytest.approx(interval.high)


def test_runs_that_share_no_budget_are_drawn_in_one_panel():
    """Without budgets, or with one in every run, a panel each would be 116 panels."""
    table = published("baseline")
    alone = table.assign(level=[f"{tokens} tokens" for tokens in table["tokens"]])
    for runs in (table.drop(columns="level"), alone):
        fit = fit_law(runs, polish=1)
        (ax,) = isoflop_figure(fit, palette=PALETTE).axes
        assert ax.get_title(loc="left") == "all runs"
        assert ax.get_lines() == []  # no parabola through runs of different budgets
        residual_figure(fit, palette=PALETTE)


def test_a_fit_that_cannot_tell_phi_still_has_its_iso_flop_curves(tmp_path):
    """Too few runs for a law: the data are drawn, nothing else, and nothing is raised."""
    few = analyse(synthetic().iloc[[0, 1, 2]], resamples=10)
    assert [path.name for path in write_figures({"few": few}, tmp_path)] == ["few-isoflop.png"]


def test_a_recipe_names_its_files_safely(tmp_path):
    """A slash in a recipe's name wrote outside of --out, or ended in a traceback."""
    analysis = analyse(synthetic().iloc[:2], resamples=10)
    names = ["../a/b", "_a_b", "_a_b", "/", "x" * 300]
    paths = list(write_figures(dict.fromkeys(names, analysis), tmp_path))
    assert {path.parent for path in paths} == {tmp_path}
    assert [path.name for path in paths[:3]] == [
        *("_a_b-isoflop.png", "_a_b-2-isoflop.png", "_-isoflop.png")
    ]
    assert len(list(tmp_path.iterdir())) == 4
