"""The worths and the loss gap, drawn: what is on the axes is what was computed."""

import matplotlib.image
import pytest

from looped.scaling.analysis import analyse
from looped.scaling.worth_figures import gains_figure, gap_figure, write_worth_figures
from tests.scaling.grids import published, synthetic


@pytest.fixture(scope="module")
def analyses():
    return {
        name: analyse(published(name), resamples=10, estimator="least_squares")
        for name in ("baseline", "truncated")
    }


def test_both_are_written_with_all_recipes(analyses, tmp_path):
    """One file each, a picture; nothing at all for runs that tell neither."""
    paths = list(write_worth_figures(analyses, tmp_path))
    assert [path.name for path in paths] == ["worth.png", "loss-gap.png"]
    for path in paths:
        assert matplotlib.image.imread(path).std() > 0.01
    few = analyse(synthetic().iloc[[0, 1, 2]], resamples=10)
    assert list(write_worth_figures({"few": few}, tmp_path)) == []


def test_the_marks_stand_at_the_worths(analyses):
    """A mark and an interval for each worth, and a line r^phi for each recipe, on log axes."""
    worths = {name: analysis.worth for name, analysis in analyses.items()}
    figure = gains_figure(worths)
    (ax,) = figure.axes
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2", "4", "8"]
    lines = [line.get_xydata() for line in ax.get_lines()]
    marks = [tuple(line[0]) for line in lines if len(line) == 1]
    spans = [tuple(line[:, 1]) for line in lines if len(line) == 2]
    gains = [gain for worth in worths.values() for gain in worth.gains.values()]
    assert [y for _, y in marks] == [gain.value for gain in gains]
    assert [round(x) for x, _ in marks] == [2, 4, 8] * 2
    assert spans == [(gain.low, gain.high) for gain in gains]
    curves = [line[-1] for line in lines if len(line) > 2]
    assert sorted(y for _, y in curves) == pytest.approx(
        sorted([1.0, 8.0, *(8**worth.phi for worth in worths.values())])
    )
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[0] == f"baseline, line r^{worths['baseline'].phi:.3f}"


def test_the_bars_are_the_shares(analyses):
    """Stacked from 0, those below it downwards; together they reach 100 %."""
    gaps = {name: analysis.gap for name, analysis in analyses.items()}
    axes = gap_figure(gaps).axes
    assert [ax.get_title(loc="left") for ax in axes] == ["baseline", "truncated"]
    for ax, gap in zip(axes, gaps.values(), strict=True):
        heights = [bar.get_height() for bar in ax.patches]
        assert heights == pytest.approx(
            [s for parts in gap.values() for s in parts.shares.values()]
        )
        for i in range(len(gap)):
            bars = ax.patches[3 * i : 3 * i + 3]
            assert sum(bar.get_height() for bar in bars) == pytest.approx(1)
            top = max(bar.get_y() + bar.get_height() for bar in bars)
            assert top == pytest.approx(sum(max(bar.get_height(), 0) for bar in bars))
        texts = [text.get_text() for text in ax.texts]
        assert texts == [f"{parts.gap:.3f} nats" for parts in gap.values()]
