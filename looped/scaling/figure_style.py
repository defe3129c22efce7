"""How every figure of the project looks: its size, its ink, one colour for each recurrence count.

A figure is drawn as wide as half a page of a report and read at that width: its text is 8 points
there. Legends stand above the axes, never over data. Recurrence counts are categories, with the
same colour and marker in every figure; the plain model (r = 1) is drawn in ink, being what the
others are measured against.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray

from looped.scaling.quantity import power_of_ten, quantity

WIDTH = 4.6
"""Of every figure, in inches."""

PANEL_HEIGHT = 1.75
"""Of one of several panels, in inches."""

INK, MUTED, RULE, PAPER = "#1b1c1e", "#5d6167", "#dfdfda", "#ffffff"
"""Text and axes; secondary lines; grid; background. The page swaps them for those of its theme."""

COLOURS = {
    1: INK,
    2: "#0173b2",
    4: "#d55e00",
    8: "#029e73",
    16: "#cc6fb8",
    3: "#3a86c8",
    6: "#b5651d",
    12: "#e0457b",
    32: "#8b6f00",
}
"""Of the usual recurrence counts: 1, 2, 4 and 8 are told apart under every kind of colour
blindness, and each colour has a contrast of 3 on white and on the dark page."""

OTHER_COLOURS = ("#7a5cc7", "#008b9a", "#7d7d7d", "#c2185b")
MARKERS = {1: "o", 2: "s", 4: "D", 8: "^", 16: "v", 3: "P", 6: "X", 12: "<", 32: ">"}
OTHER_MARKERS = ("h", "p", "d", "8")

CURVE_POINTS = 100

TICK_STEPS = (1, 3, 5, 2, 7, 4, 6, 8, 9)
"""Multiples of powers of ten that may be ticks of a logarithmic axis, the most welcome first."""

LEAST_GAP = 0.2
"""Between neighbouring ticks, as a share of the axis."""

MAX_LEVELS = 12
ALL_RUNS = "all runs"
"""The one level of runs whose budgets are unknown, or too many to be told apart in a figure."""

_RC: dict[str, Any] = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.title_fontsize": 7.5,
    "figure.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.titlepad": 4,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "lines.markeredgewidth": 0.0,
    "legend.frameon": False,
    "legend.handletextpad": 0.3,
    "legend.columnspacing": 1.2,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "svg.fonttype": "none",  # text stays text: searchable, read aloud, edited in a paper's figure
    "svg.hashsalt": "looped",
}


@dataclass(frozen=True)
class Look:
    """How one recurrence count is drawn.

    Attributes:
        colour: as `#rrggbb`.
        marker: of matplotlib.
    """

    colour: str
    marker: str


Palette = Mapping[int, Look]


@contextmanager
def figure_style() -> Iterator[None]:
    """Within it figures are made and saved; afterwards matplotlib is as it was."""
    style: dict[Any, Any] = sns.axes_style("whitegrid") | sns.plotting_context("paper") | _RC
    with mpl.rc_context(style):
        yield


def palette_of(recurrences: Iterable[int]) -> dict[int, Look]:
    """One look for each of these recurrence counts, ascending.

    The usual counts look the same in every project; where figures are to agree on unusual ones,
    make one palette of all counts for all of them.
    """
    looks: dict[int, Look] = {}
    unusual = 0
    for r in sorted({int(value) for value in recurrences}):
        if r in COLOURS:
            looks[r] = Look(COLOURS[r], MARKERS[r])
        else:
            # Colours run out before the pairs of colour and marker do.
            colour = OTHER_COLOURS[unusual % len(OTHER_COLOURS)]
            marker = OTHER_MARKERS[(unusual // len(OTHER_COLOURS)) % len(OTHER_MARKERS)]
            looks[r] = Look(colour, marker)
            unusual += 1
    return looks


def seaborn_looks(palette: Palette) -> dict[str, Any]:
    """The palette as seaborn takes it, for a column `r` of recurrence counts as text."""
    return {
        "hue": "r",
        "hue_order": [str(r) for r in palette],
        "palette": {str(r): look.colour for r, look in palette.items()},
    }


def categorised(runs: pd.DataFrame) -> pd.DataFrame:
    """A copy with r as text, the unique parameters, and levels that are few enough to draw.

    Seaborn takes whole numbers for a scale and puts counts into the legend that no run has.
    """
    table = runs.copy()
    table["r"] = table["recurrences"].astype(str)
    table["n_total"] = table["n_once"] + table["n_rec"]
    if "level" not in table or table["level"].nunique() > MAX_LEVELS:
        table["level"] = ALL_RUNS
    return table


def new_figure(height: float, *, wspace: float = 0.02) -> Figure:
    """An empty figure of the one width; its legend may stand outside the axes.

    Args:
        height: in inches.
        wspace: between panels side by side, as a share of their width.
    """
    layout = ConstrainedLayoutEngine(w_pad=0.05, h_pad=0.03, hspace=0.03, wspace=wspace)
    return Figure(figsize=(WIDTH, height), layout=layout)


def leave_empty(axes: NDArray[Any], *, used: int, columns: int) -> None:
    """Hide the panels of a grid that stay empty, and label the x axis above their places.

    Args:
        axes: of the grid, row by row, with a common x axis.
        used: how many of them are drawn, the first ones.
        columns: of the grid.
    """
    for ax in axes[used:]:
        ax.set_visible(False)
    for ax in axes[max(used - columns, 0) : used]:
        ax.tick_params(labelbottom=True)


def handle(look: Look, label: str) -> Line2D:
    """The entry of a recurrence count in a legend."""
    return Line2D([], [], marker=look.marker, linestyle="", color=look.colour, label=label)


def star_handle(label: str) -> Line2D:
    """The entry of a minimum in a legend."""
    return Line2D([], [], **star(PAPER), linestyle="", label=label)


def star(colour: str) -> dict[str, Any]:
    """How a minimum is marked."""
    return {
        "marker": "*",
        "markersize": 9,
        "color": colour,
        "markeredgecolor": INK,
        "markeredgewidth": 0.6,
    }


def recurrence_handles(palette: Palette) -> list[Line2D]:
    """Entries `r = 1`, `r = 2`, ... of a legend."""
    return [handle(look, f"r = {r}") for r, look in palette.items()]


def legend_above(figure: Figure, handles: Sequence[Line2D | Patch], *, columns: int = 5) -> None:
    """The figure's legend, in a row above its axes."""
    figure.legend(
        handles=handles, loc="outside upper left", ncols=min(len(handles), columns), borderpad=0.1
    )


def parameters_axis(ax: Axes) -> None:
    """Once all is drawn: a logarithmic x axis of counts, with ticks such as 20M, 50M, 100M."""
    _logarithmic(ax, quantity)


def flops_axis(ax: Axes) -> None:
    """Once all is drawn: a logarithmic x axis of FLOPs, with powers of ten."""
    _logarithmic(ax, power_of_ten)


def _logarithmic(ax: Axes, text: Callable[[float], str]) -> None:
    """A few round ticks whose labels do not touch, also where the axis spans a few per cent."""
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    gap = (high / low) ** LEAST_GAP
    ticks: list[float] = []
    for tick in (float(step * decade) for step in TICK_STEPS for decade in decades):
        if low <= tick <= high and all(not 1 / gap < tick / other < gap for other in ticks):
            ticks.append(tick)
    if len(ticks) < 2:
        ticks = np.geomspace(low, high, 5)[1:-1].tolist()
    ax.xaxis.set_major_locator(FixedLocator(sorted(ticks)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlim(low, high)
