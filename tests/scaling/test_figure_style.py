"""What holds for every figure: colours that can be told apart, ticks, legends beside the data."""

import itertools

import matplotlib as mpl
import numpy as np
import pytest

from looped.scaling.figure_style import (
    COLOURS,
    INK,
    OTHER_COLOURS,
    PAPER,
    figure_style,
    flops_axis,
    new_figure,
    palette_of,
    parameters_axis,
)

DARK_PAPER = "#14161a"  # of looped/report/template/page.css
DARK_INK = "#e9e8e4"

# Machado, Oliveira, Fernandes (2009), severity 1, on linear RGB.
BLINDNESS = {
    "none": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)


def linear(colour: str) -> np.ndarray:
    value = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(first: str, second: str) -> float:
    """Of WCAG 2."""
    light, dark = sorted((float(XYZ[1] @ linear(c)) for c in (first, second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def lab(colour: str, blindness: str) -> np.ndarray:
    seen = np.clip(BLINDNESS[blindness] @ linear(colour), 0, 1)
    t = XYZ @ seen / (XYZ @ np.ones(3))
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("blindness", BLINDNESS)
@pytest.mark.parametrize("ink", [INK, DARK_INK])
def test_the_doubling_ladder_is_told_apart_by_everybody(blindness, ink):
    """Two recurrence counts in one colour would turn the figures around for one man in twelve.

    r = 16 comes nearer to r = 2 without red; their markers differ too.
    """
    for counts, least in (((2, 4, 8), 15), ((2, 4, 8, 16), 10)):
        colours = [ink] + [COLOURS[r] for r in counts]
        for first, second in itertools.combinations(colours, 2):
            distance = np.linalg.norm(lab(first, blindness) - lab(second, blindness))
            assert distance > least, (first, second, distance)


@pytest.mark.parametrize("colour", [*(c for c in COLOURS.values() if c != INK), *OTHER_COLOURS])
def test_every_colour_stands_out_on_both_papers(colour):
    """WCAG asks 3 of what is drawn; seaborn's orange has 2.5 on white."""
    assert contrast(colour, PAPER) >= 3
    assert contrast(colour, DARK_PAPER) >= 3


def test_a_recurrence_count_looks_the_same_everywhere():
    """The colour came from the place among the counts at hand, so r = 4 changed with the recipe."""
    assert palette_of([1, 2, 4, 8])[4] == palette_of([4])[4] == palette_of([3, 4, 12])[4]


def test_unusual_counts_get_looks_of_their_own():
    """Of 24 counts that nobody has planned for, no two look alike."""
    palette = palette_of([*range(40, 56), 1, 2, 3, 4, 6, 8, 12, 16])
    assert list(palette) == sorted(palette)
    assert len(set(palette.values())) == 24


@pytest.mark.parametrize(
    ("axis", "low", "high", "labels"),
    [
        (parameters_axis, 9e6, 1.2e9, ["10M", "30M", "100M", "300M", "1G"]),
        (parameters_axis, 1.8e7, 6e8, ["30M", "100M", "300M"]),
        (parameters_axis, 5.9e7, 2.1e8, ["70M", "100M", "200M"]),
        (parameters_axis, 6.1e7, 6.3e7, None),
        (
            flops_axis,
            4e17,
            2.9e19,
            ["4\u00d710\u00b9\u2077", "10\u00b9\u2078", "3\u00d710\u00b9\u2078", "10\u00b9\u2079"],
        ),
    ],
)
def test_a_logarithmic_axis_has_a_few_round_ticks(axis, low, high, labels):
    """Three to six, also where the axis spans a few per cent."""
    with figure_style():
        figure = new_figure(height=2)
        ax = figure.subplots()
        ax.plot([low, high], [0, 1])
        ax.set_xlim(low, high)
        axis(ax)
        figure.draw_without_rendering()
        found = [tick.get_text() for tick in ax.get_xticklabels()]
    assert 3 <= len(found) <= 6
    assert labels is None or found == labels
    assert len(set(found)) == len(found)


def test_the_style_ends_with_its_block():
    """Figures of whoever imports looped keep their own style."""
    before = dict(mpl.rcParams)
    with figure_style():
        assert mpl.rcParams["axes.edgecolor"] != before["axes.edgecolor"]
    assert dict(mpl.rcParams) == before
