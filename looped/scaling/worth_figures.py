"""Beyond phi, drawn: the worth of each recurrence count, and what the loss gap is made of.

Recipes are told apart by how their marks are filled and their lines dashed, since colour is the
recurrence count's in every figure.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogLocator,
    NullFormatter,
    NullLocator,
    PercentFormatter,
)

from looped.scaling.analysis import Analysis
from looped.scaling.figure_style import (
    INK,
    MUTED,
    PAPER,
    Palette,
    figure_style,
    legend_above,
    new_figure,
    palette_of,
)
from looped.scaling.figures import save
from looped.scaling.loss_gap import PARTS, GapParts
from looped.scaling.worth import Worth

HEIGHT = 3.0
"""Of a figure, in inches; one with several panels is higher."""

FILLS = ("full", "none", "left", "top", "right", "bottom")
DASHES: tuple[Any, ...] = (
    "solid",
    (0, (5, 2)),
    (0, (1, 1)),
    (0, (5, 1, 1, 1)),
    (0, (3, 2)),
    (0, (8, 2)),
)
PART_COLOURS = ("#7a5cc7", "#008b9a", "#a9adb3")
LINE_POINTS = 50
DODGE = 0.03
"""Series of several recipes stand this far apart, in log r."""

PART_LABELS = {
    "per_recurrence": "a recurrence is worth less than a block",
    "being_looped": "being looped at all",
    "rest": "not explained",
}


def write_worth_figures(analyses: Mapping[str, Analysis], folder: Path) -> Iterator[Path]:
    """Draw both figures, all recipes in each, as far as the data allow.

    Args:
        analyses: by name of the recipe.
        folder: an existing directory.

    Yields:
        `worth.png` and `loss-gap.png`, as they are written.
    """
    worths = {name: a.worth for name, a in analyses.items() if a.worth is not None}
    gaps = {name: a.gap for name, a in analyses.items() if has_shares(a.gap)}
    if worths:
        path = folder / "worth.png"
        save(gains_figure(worths), path)
        yield path
    if gaps:
        path = folder / "loss-gap.png"
        save(gap_figure(gaps), path)
        yield path


def has_shares(gap: Mapping[int, GapParts]) -> bool:
    """Whether a gap can be drawn: at some r looped runs are worse than the plain model."""
    return any(parts.shares is not None for parts in gap.values())


def gains_figure(worths: Mapping[str, Worth], *, palette: Palette | None = None) -> Figure:
    """The worth g_r against r on logarithmic axes: a series with intervals for each recipe.

    Beside each series the line r^phi of its plain law, where that was told; dotted, what r unique
    blocks and a single one would be worth.

    Args:
        worths: by recipe, at least one.
        palette: with their recurrence counts; null = made of these.
    """
    counts = sorted({1, *(r for worth in worths.values() for r in worth.gains)})
    palette = palette or palette_of(counts)
    span = np.geomspace(1, counts[-1], LINE_POINTS)
    handles = []
    with figure_style():
        figure = new_figure(HEIGHT)
        ax = figure.subplots()
        for bound in (span, np.ones_like(span)):
            ax.plot(span, bound, color=MUTED, linestyle=":", linewidth=1, zorder=1)
        for i, (name, worth) in enumerate(worths.items()):
            fill, dash = FILLS[i % len(FILLS)], DASHES[i % len(DASHES)]
            mark: dict[str, Any] = {
                "marker": "o",
                "markersize": 5.5,
                "markeredgewidth": 1.2,
                "fillstyle": fill,
                "markerfacecoloralt": PAPER,
            }
            shift = np.exp(DODGE * (i - (len(worths) - 1) / 2))
            for r, gain in worth.gains.items():
                colour = palette[r].colour
                if gain.low is not None and gain.high is not None:
                    ax.plot([r * shift] * 2, [gain.low, gain.high], color=colour, linewidth=1.4)
                ax.plot(r * shift, gain.value, color=colour, **mark)
            label = name
            if worth.phi is not None:
                ax.plot(span, span**worth.phi, color=INK, linewidth=0.9, linestyle=dash)
                label = f"{name}, line r^{worth.phi:.3f}"
            handles.append(
                Line2D([], [], color=INK, linewidth=0.9, linestyle=dash, label=label, **mark)
            )
        bounds = Line2D([], [], color=MUTED, linestyle=":", linewidth=1)
        bounds.set_label("r blocks, one block")
        _log_axes(ax, counts)
        ax.set(xlabel="recurrences r", ylabel="worth $g_r$ (unique blocks)")
        legend_above(figure, [*handles, bounds], columns=2)
    return figure


def gap_figure(gaps: Mapping[str, Mapping[int, GapParts]]) -> Figure:
    """Which share of the loss gap to the plain model each part explains: bars of a panel a recipe.

    Bars stand for recurrence counts, with the gap in nats above them. Parts that oppose each other
    reach beyond 0 and 100 %.

    Args:
        gaps: by recipe; at least one for which `has_shares` holds. Recurrence counts without a gap
            are left out.
    """
    colours = dict(zip(PARTS, PART_COLOURS, strict=True))
    with figure_style():
        figure = new_figure(HEIGHT * (0.5 + 0.5 * len(gaps)))
        axes = figure.subplots(len(gaps), 1, squeeze=False, sharex=False)[:, 0]
        for ax, (name, gap) in zip(axes, gaps.items(), strict=True):
            shown = {r: parts for r, parts in gap.items() if parts.shares is not None}
            for i, parts in enumerate(shown.values()):
                assert parts.shares is not None
                above = below = 0.0
                for part, share in parts.shares.items():
                    base = above if share >= 0 else below
                    ax.bar(i, share, bottom=base, color=colours[part], width=0.62, edgecolor=PAPER)
                    above, below = above + max(share, 0.0), below + min(share, 0.0)
                ax.annotate(
                    f"{parts.gap:.3f} nats",
                    (i, above),
                    xytext=(0, 2),
                    textcoords="offset points",
                    ha="center",
                )
            ax.axhline(0, color=MUTED, linewidth=0.8)
            ax.set_xticks(range(len(shown)), [f"r = {r}" for r in shown])
            ax.yaxis.set_major_formatter(PercentFormatter(xmax=1))
            ax.grid(visible=False, axis="x")
            ax.margins(y=0.2)
            ax.set(title=name, ylabel="share of the gap")
        handles = [Patch(color=colours[part], label=PART_LABELS[part]) for part in PARTS]
        legend_above(figure, handles, columns=2)
    return figure


def _log_axes(ax: Axes, counts: list[int]) -> None:
    """Ticks at the recurrence counts, and 1, 2, 5 in blocks."""
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.xaxis.set_major_locator(FixedLocator(counts))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())
