"""Training curves: loss against the compute spent so far, one line per run."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from looped.report.curves import TrainedRun
from looped.scaling.figure_style import (
    INK,
    MUTED,
    Palette,
    figure_style,
    flops_axis,
    legend_above,
    new_figure,
    recurrence_handles,
)
from looped.scaling.law import Floats

MAX_POINTS = 120
"""Of one curve; what lies between them is averaged."""

SMOOTHED = 0.1
"""Share of a curve over which each of its points is averaged: the loss of one batch is noisy."""


def curves_figure(runs: Sequence[tuple[int, TrainedRun]], *, palette: Palette) -> Figure | None:
    """The curves of runs of one recipe; null when none has one.

    Args:
        runs: each with the recurrence count it was fitted as: that of a control is 1.
        palette: with their recurrence counts.
    """
    if not any(run.has_curve or len(run.validations) > 1 for _, run in runs):
        return None
    counts = {recurrences for recurrences, _ in runs}
    width = 1.0 if len(runs) <= 30 else 0.6
    with figure_style():
        figure = new_figure(height=3.0)
        ax = figure.subplots()
        for recurrences, run in runs:
            look = palette[recurrences]
            if run.has_curve:
                flops, loss = _thinned(run.train_flops), _thinned(_smoothed(run.train_loss))
            else:
                flops, loss = np.array(run.validations, dtype=float).reshape(-1, 2).T
            ax.plot(flops, loss, color=look.colour, linewidth=width, alpha=0.55)
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
        flops_axis(ax)
        ax.set(xlabel="training compute so far (FLOPs)", ylabel="loss (nats per token)")
        handles = recurrence_handles({r: look for r, look in palette.items() if r in counts})
        handles.append(Line2D([], [], color=MUTED, linewidth=1, label="training"))
        legend_above(figure, handles, columns=6)
    return figure


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
