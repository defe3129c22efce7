"""Training curves: loss against the compute spent so far, one line per run."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from looped.report.curves import TrainedRun
from looped.scaling.figure_style import (
    INK,
    MUTED,
    Look,
    Palette,
    figure_style,
    flops_axis,
    handle,
    leave_empty,
    legend_above,
    new_figure,
)
from looped.scaling.law import Floats

MAX_POINTS = 120
"""Of one curve; what lies between them is averaged."""

SMOOTHED = 0.1
"""Share of a curve over which each of its points is averaged: the loss of one batch is noisy."""


def curves_figure(runs: Sequence[tuple[int, TrainedRun]], *, palette: Palette) -> Figure | None:
    """The curves of runs of one recipe, a panel per recurrence count; null when none has one.

    Args:
        runs: each with the recurrence count it was fitted as: that of a control is 1.
        palette: with their recurrence counts.
    """
    if not any(run.has_curve or len(run.validations) > 1 for _, run in runs):
        return None
    counts = sorted({recurrences for recurrences, _ in runs})
    columns = min(len(counts), 2)
    rows = -(-len(counts) // columns)
    with figure_style():
        figure = new_figure(height=0.8 + 1.8 * rows)
        axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
        for ax, recurrences in zip(axes, counts, strict=False):
            for run in (run for r, run in runs if r == recurrences):
                _draw(ax, run, palette[recurrences])
            ax.set_title(f"r = {recurrences}")
        flops_axis(axes[0])
        leave_empty(axes, used=len(counts), columns=columns)
        training = Line2D([], [], color=MUTED, linewidth=1, label="training")
        legend_above(figure, [training, handle(Look(MUTED, "o"), "last validation")])
        figure.supxlabel("training compute so far (FLOPs)", fontsize=8)
        figure.supylabel("loss (nats per token)", fontsize=8)
    return figure


def _draw(ax: Axes, run: TrainedRun, look: Look) -> None:
    if run.has_curve:
        flops, loss = _thinned(run.train_flops), _thinned(_smoothed(run.train_loss))
    else:
        flops, loss = np.array(run.validations, dtype=float).reshape(-1, 2).T
    ax.plot(flops, loss, color=look.colour, linewidth=0.8, alpha=0.7)
    if run.validations:
        ax.plot(
            *run.validations[-1],
            marker=look.marker,
            color=look.colour,
            markeredgecolor=INK,
            markeredgewidth=0.5,
            markersize=4,
            zorder=3,
        )


def _smoothed(values: Floats) -> Floats:
    """Running mean, symmetric about each point and so narrower towards the ends."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    at = np.arange(len(values))
    reach = np.minimum(int(SMOOTHED * len(values) / 2), np.minimum(at, at[::-1]))
    return np.asarray((sums[at + reach + 1] - sums[at - reach]) / (2 * reach + 1))


def _thinned(values: Floats) -> Floats:
    """Means of neighbours, so that no curve has more than `MAX_POINTS`."""
    parts = np.array_split(values, min(len(values), MAX_POINTS))
    return np.array([part.mean() for part in parts])
