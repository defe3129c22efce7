"""The best loss that a budget buys at each recurrence count, by the law and as measured."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from looped.scaling.analysis import Analysis
from looped.scaling.figure_style import (
    CURVE_POINTS,
    MUTED,
    Palette,
    figure_style,
    flops_axis,
    legend_above,
    new_figure,
    recurrence_handles,
    star,
    star_handle,
)
from looped.scaling.levels import is_budget, level_order
from looped.scaling.size_family import flops_per_token, size_families


def compute_optimal_figure(analysis: Analysis, *, palette: Palette) -> Figure | None:
    """Loss against training compute; null when the runs do not tell their FLOPs.

    The curve of a recurrence count is the law's minimum over the sizes that were trained at it; it
    ends where that minimum would lie outside of them. Runs of one budget are shown by the minimum
    of their parabola, others by themselves.
    """
    fit = analysis.fit
    runs = fit.runs.assign(train_flops=flops_per_token(fit.runs) * fit.runs["tokens"])
    runs = runs[np.isfinite(runs["train_flops"])]
    if runs.empty:
        return None
    families = size_families(fit.runs)
    minima = [
        cell
        for cell in analysis.parabolas
        if cell.inside and is_budget(cell.level) and level_order(cell.level) > 0
    ]
    in_minima = {(cell.level, cell.recurrences) for cell in minima}
    span = np.geomspace(runs["train_flops"].min(), runs["train_flops"].max(), CURVE_POINTS)
    with figure_style():
        figure = new_figure(height=3.0)
        ax = figure.subplots()
        drawn = False
        for r, group in runs.groupby("recurrences"):
            look = palette[int(str(r))]
            family = families.get(int(str(r)))
            if fit.law is not None and family is not None and family.flops_per_token is not None:
                best = [family.best_at_budget(fit.law, float(budget)) for budget in span]
                losses = [np.nan if found is None else found[1] for found in best]
                drawn = drawn or bool(np.isfinite(losses).any())
                ax.plot(span, losses, color=look.colour, linewidth=1.1)
            alone = [
                (level, int(str(r))) not in in_minima for level in group.get("level", group.index)
            ]
            ax.plot(
                *(group["train_flops"][alone], group["loss"][alone]),
                linestyle="",
                marker=look.marker,
                markersize=3.5,
                alpha=0.7,
                color=look.colour,
            )
        for cell in minima:
            colour = palette[cell.recurrences].colour
            ax.plot([level_order(cell.level)], [cell.loss or np.nan], **star(colour), zorder=3)
        flops_axis(ax)
        ax.set(xlabel="training compute (FLOPs)", ylabel="validation loss (nats per token)")
        shown = {r: look for r, look in palette.items() if r in set(runs["recurrences"])}
        handles = recurrence_handles(shown)
        if minima:
            handles.append(star_handle("measured minimum"))
        if drawn:
            handles.append(Line2D([], [], color=MUTED, linewidth=1.1, label="law"))
        legend_above(figure, handles, columns=6)
    return figure
