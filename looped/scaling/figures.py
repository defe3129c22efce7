"""The figures of one recipe, drawn with seaborn: what `looped phi --out` and the report show.

How they look is decided in `figure_style.py`. None has a title: what it shows stands beside it on
the page, and in the name of its file.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from looped.scaling.analysis import Analysis
from looped.scaling.figure_style import (
    ALL_RUNS,
    CURVE_POINTS,
    INK,
    MUTED,
    PANEL_HEIGHT,
    PAPER,
    Palette,
    categorised,
    figure_style,
    leave_empty,
    legend_above,
    new_figure,
    palette_of,
    parameters_axis,
    recurrence_handles,
    seaborn_looks,
    star,
    star_handle,
)
from looped.scaling.fit import FitResult
from looped.scaling.fitted import Fitted
from looped.scaling.intervals import DESCRIPTIONS
from looped.scaling.isoflop import isoflop_parabolas
from looped.scaling.levels import level_order
from looped.scaling.profile import profile_phi
from looped.scaling.quantity import level_in_words

MAX_PANELS_OF_TWO_COLUMNS = 6

MAX_STEM = 100
"""Characters of a recipe's name that its files bear."""

DPI = 200
HISTOGRAM_BINS = 40
BLUE = "#0173b2"
INTERVAL_SHADE = 0.16

LEVEL_AXES = {"FLOPs": "training budget (FLOPs)", "tokens": "training tokens"}
MAX_UPRIGHT = 6
"""Levels whose names stand side by side without turning them."""


def write_figures(analyses: Mapping[str, Analysis], folder: Path) -> Iterator[Path]:
    """Draw every figure of every recipe that its data allow.

    Args:
        analyses: by name of the recipe.
        folder: an existing directory.

    Yields:
        The files, `RECIPE-isoflop.png` and so on, as they are written.
    """
    palette = palette_of(r for analysis in analyses.values() for r in analysis.fit.runs.recurrences)
    stems = file_stems(analyses)
    for name, analysis in analyses.items():
        for kind, figure in recipe_figures(analysis, palette=palette).items():
            path = folder / f"{stems[name]}-{kind}.png"
            save(figure, path)
            yield path


def recipe_figures(analysis: Analysis, *, palette: Palette) -> dict[str, Figure]:
    """The figures that the data of one recipe allow, by kind."""
    figures = {"isoflop": isoflop_figure(analysis.fit, palette=palette)}
    if analysis.fit.law is not None:
        figures["effective-size"] = effective_size_figure(analysis.fit, palette=palette)
        figures["residuals"] = residual_figure(analysis.fit, palette=palette)
    if analysis.fit.phi is not None and "phi" not in analysis.fit.held:
        figures["phi"] = phi_figure(analysis)
    return figures


def save(figure: Figure, path: Path) -> None:
    """Write a figure in the format that the name of its file says."""
    with figure_style():
        date = {"Date": None} if path.suffix == ".svg" else None  # the same runs, the same file
        figure.savefig(path, dpi=DPI, metadata=date)


def file_stems(names: Iterable[str]) -> dict[str, str]:
    """What the files of each recipe begin with: its name, as far as that is safe and its own."""
    stems: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^\w.+=-]+", "_", name).lstrip(".")[:MAX_STEM] or "recipe"
        stem, number = plain, 2
        while stem in stems.values():
            stem, number = f"{plain}-{number}", number + 1
        stems[name] = stem
    return stems


def isoflop_figure(fit: FitResult, *, palette: Palette) -> Figure:
    """Loss against unique parameters, a panel per budget, with each cell's parabola and minimum."""
    runs = categorised(fit.runs)
    cells = isoflop_parabolas(runs)
    levels = list(dict.fromkeys(cell.level for cell in cells))
    if levels == [ALL_RUNS]:
        cells = []  # runs of different budgets lie on no parabola
    columns = 1 if len(levels) == 1 else 2 if len(levels) <= MAX_PANELS_OF_TWO_COLUMNS else 3
    rows = -(-len(levels) // columns)
    with figure_style():
        figure = new_figure(height=0.5 + rows * (PANEL_HEIGHT if rows > 1 else 1.4 * PANEL_HEIGHT))
        axes = figure.subplots(rows, columns, squeeze=False, sharex=True).ravel()
        for ax, level in zip(axes, levels, strict=False):
            _scatter(ax, runs[runs["level"] == level], palette, x="n_total", y="loss")
            ax.set(title=level_in_words(level), xlabel="", ylabel="")
            ax.yaxis.set_major_locator(MaxNLocator(5))
        stars = False
        for cell in cells:
            ax = axes[levels.index(cell.level)]
            colour = palette[cell.recurrences].colour
            sizes = runs[(runs["level"] == cell.level) & (runs["recurrences"] == cell.recurrences)]
            if cell.coefficients is not None:
                span = np.geomspace(sizes["n_total"].min(), sizes["n_total"].max(), CURVE_POINTS)
                ax.plot(span, cell.loss_at(span), color=colour, linewidth=1)
            if cell.inside:
                ax.plot(*(cell.n_total, cell.loss), **star(colour), zorder=3)
                stars = True
        for ax in axes[: len(levels)]:
            parameters_axis(ax)
        leave_empty(axes, used=len(levels), columns=columns)
        shown = {r: look for r, look in palette.items() if r in set(runs["recurrences"])}
        handles = recurrence_handles(shown) + ([star_handle("minimum")] if stars else [])
        legend_above(figure, handles)
        figure.supxlabel("unique parameters $N_{once} + N_{rec}$", fontsize=8)
        figure.supylabel("validation loss (nats per token)", fontsize=8)
    return figure


def effective_size_figure(fit: FitResult, *, palette: Palette) -> Figure:
    """Loss less its data term against N_once + r^phi N_rec: one curve if the law holds."""
    assert fit.law is not None
    law = fit.law
    runs = categorised(fit.runs)
    runs["effective"] = law.effective_size(runs["recurrences"], runs["n_once"], n_rec=runs["n_rec"])
    runs["size_loss"] = runs["loss"] - law.B * runs["tokens"] ** -law.beta
    span = np.geomspace(runs["effective"].min(), runs["effective"].max(), CURVE_POINTS)
    with figure_style():
        figure = new_figure(height=3.0)
        ax = figure.subplots()
        ax.plot(span, law.E + law.A * span**-law.alpha, color=MUTED, linewidth=1, zorder=1)
        _scatter(ax, runs, palette, x="effective", y="size_loss")
        doubt = "" if fit.identifiable else " (the best fit, unsupported)"
        ax.set(
            xlabel=f"effective size $N_{{once}} + r^{{{law.phi:.3f}}} N_{{rec}}$ (parameters)"
            + doubt,
            ylabel=r"loss $- B D^{-\beta}$ (nats per token)",
        )
        parameters_axis(ax)
        curve = Line2D([], [], color=MUTED, linewidth=1, label=r"$E + A N_{eff}^{-\alpha}$")
        shown = {r: look for r, look in palette.items() if r in set(runs["recurrences"])}
        legend_above(figure, [*recurrence_handles(shown), curve])
    return figure


def residual_figure(fit: FitResult, *, palette: Palette) -> Figure:
    """Residuals in nats by budget, one mark per run, side by side for each recurrence count."""
    runs = categorised(fit.runs)
    runs["residual"] = fit.residuals_nats
    order = sorted(runs["level"].unique(), key=level_order)
    shown = {r: look for r, look in palette.items() if r in set(runs["recurrences"])}
    with figure_style():
        figure = new_figure(height=2.6)
        ax = figure.subplots()
        ax.axhline(0, color=MUTED, linewidth=0.8)
        for r, look in shown.items():
            # One call each: seaborn gives all groups of a strip plot the same marker.
            sns.stripplot(
                runs[runs["recurrences"] == r],
                x="level",
                y="residual",
                order=order,
                marker=look.marker,
                **seaborn_looks(shown),
                dodge=len(shown) > 1,
                jitter=False,
                size=4,
                legend=False,
                ax=ax,
            )
        units = {level_in_words(level).rpartition(" ")[2] for level in order}
        unit = units.pop() if len(units) == 1 and order != [ALL_RUNS] else ""
        ax.set_xticks(
            range(len(order)),
            labels=[level_in_words(level).removesuffix(f" {unit}") for level in order],
            rotation=0 if len(order) <= MAX_UPRIGHT else 45,
        )
        ax.set(xlabel=LEVEL_AXES.get(unit, ""), ylabel=r"$L - \hat{L}$ (nats per token)")
        ax.grid(visible=False, axis="x")
        legend_above(figure, recurrence_handles(shown))
    return figure


def phi_figure(analysis: Analysis) -> Figure:
    """What the data say of phi: the bootstrap's distribution above, the profile below."""
    fit = analysis.fit
    interval = analysis.intervals.intervals[analysis.kind]
    profile = profile_phi(Fitted.of(fit), level=interval.level)
    bootstrap = analysis.intervals.bootstrap
    percent = f"{100 * interval.level:g} %"
    with figure_style():
        figure = new_figure(height=3.4)
        upper, lower = figure.subplots(2, 1, sharex=True)
        if bootstrap is not None and len(bootstrap.phi):
            # Bins over the bulk: a few far resamples would otherwise make thousands of them.
            shown = np.quantile(bootstrap.phi, [0.005, 0.995])
            sns.histplot(
                x=bootstrap.phi,
                ax=upper,
                stat="density",
                color=BLUE,
                alpha=0.55,
                edgecolor=PAPER,
                linewidth=0.3,
                bins=HISTOGRAM_BINS,
                binrange=(float(shown[0]), float(shown[1])) if shown[1] > shown[0] else None,
            )
        upper.set(ylabel="density", title="block bootstrap over cells")
        lower.plot(profile.phi, profile.excess, color=BLUE)
        lower.axhline(profile.threshold, color=MUTED, linestyle=(0, (4, 3)), linewidth=0.8)
        lower.set(
            xlabel=r"$\varphi$",
            ylabel=r"2 ($S(\varphi) - S$) / dispersion",
            title=f"profile of the objective (dashed: {percent}, runs taken as independent)",
            ylim=(0, 3 * profile.threshold),
        )
        handles: list[Line2D | Patch] = [
            Line2D([], [], color=INK, linewidth=1, label=rf"$\varphi$ = {fit.phi:.3f}")
        ]
        for ax in (upper, lower):
            _mark_interval(ax, fit, interval.low, interval.high)
        if interval.low is not None and interval.high is not None:
            label = f"{percent} interval: {DESCRIPTIONS[interval.kind]}"
            handles.append(Patch(color=BLUE, alpha=INTERVAL_SHADE, linewidth=0, label=label))
        legend_above(figure, handles)
    return figure


def _mark_interval(ax: Axes, fit: FitResult, low: float | None, high: float | None) -> None:
    assert fit.phi is not None
    ax.axvline(fit.phi, color=INK, linewidth=1)
    if low is not None and high is not None:
        ax.axvspan(low, high, color=BLUE, alpha=INTERVAL_SHADE, linewidth=0, zorder=0)


def _scatter(ax: Axes, runs: pd.DataFrame, palette: Palette, *, x: str, y: str) -> None:
    """One mark per run, each recurrence count with its colour and marker."""
    shown = {r: look for r, look in palette.items() if r in set(runs["recurrences"])}
    sns.scatterplot(
        runs,
        x=x,
        y=y,
        **seaborn_looks(shown),
        style="r",
        style_order=[str(r) for r in shown],
        markers={str(r): look.marker for r, look in shown.items()},
        s=16,
        linewidth=0,
        ax=ax,
        legend=False,
    )
