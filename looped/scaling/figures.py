"""The figures of `looped phi --out`: seaborn on the Agg canvas, one file each.

Recurrence counts are categories, never a continuous scale: seaborn would otherwise put values into
the legend that no run has.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

from looped.scaling.analysis import Analysis
from looped.scaling.fit import FitResult
from looped.scaling.fitted import Fitted
from looped.scaling.intervals import DESCRIPTIONS
from looped.scaling.isoflop import isoflop_parabolas
from looped.scaling.profile import profile_phi
from looped.scaling.runs import is_budget, level_order

STYLE = {"style": "whitegrid", "context": "notebook", "font_scale": 0.85}
PANEL = 3.2
"""Height of one panel, in inches."""

MAX_COLUMNS = 3
MAX_PANELS = 12
ALL_RUNS = "all runs"
"""The one panel of runs whose budgets are unknown, or too many for a panel each."""

MAX_STEM = 100
"""Characters of a recipe's name that its files bear."""

DPI = 150
CURVE_POINTS = 100
HISTOGRAM_BINS = 40


def write_figures(analyses: Mapping[str, Analysis], folder: Path) -> Iterator[Path]:
    """Draw every figure of every recipe that its data allow.

    Args:
        analyses: by name of the recipe.
        folder: an existing directory.

    Yields:
        The files, `RECIPE-isoflop.png` and so on, as they are written.
    """
    mpl.use("Agg")
    stems = _stems(analyses)
    with sns.plotting_context(STYLE["context"], font_scale=STYLE["font_scale"]):
        for name, analysis in analyses.items():
            figures = {"isoflop": isoflop_figure(analysis.fit)}
            if analysis.fit.law is not None:
                figures["effective-size"] = effective_size_figure(analysis.fit)
                figures["residuals"] = residual_figure(analysis.fit)
            if analysis.fit.phi is not None and "phi" not in analysis.fit.held:
                figures["phi"] = phi_figure(analysis)
            for kind, figure in figures.items():
                figure.suptitle(f"{name}: {figure.get_suptitle()}")
                path = folder / f"{stems[name]}-{kind}.png"
                figure.savefig(path, dpi=DPI, bbox_inches="tight")
                yield path


def _stems(names: Iterable[str]) -> dict[str, str]:
    """What the files of each recipe begin with: its name, as far as that is safe and its own."""
    stems: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^\w.+=-]+", "_", name).lstrip(".")[:MAX_STEM] or "recipe"
        stem, number = plain, 2
        while stem in stems.values():
            stem, number = f"{plain}-{number}", number + 1
        stems[name] = stem
    return stems


def isoflop_figure(fit: FitResult) -> Figure:
    """Loss against unique parameters, a panel per budget, with each cell's parabola and minimum."""
    runs = _categorised(fit.runs)
    palette = _palette(runs)
    cells = isoflop_parabolas(runs)
    levels = list(dict.fromkeys(cell.level for cell in cells))
    if levels == [ALL_RUNS]:
        cells = []  # runs of different budgets lie on no parabola
    columns = min(MAX_COLUMNS, math.ceil(math.sqrt(len(levels))))
    rows = -(-len(levels) // columns)
    with sns.axes_style(STYLE["style"]):
        figure = Figure(figsize=(columns * PANEL * 1.25, rows * PANEL), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, level in zip(axes, levels, strict=False):
        sns.scatterplot(
            runs[runs["level"] == level],
            x="n_total",
            y="loss",
            hue="r",
            palette=palette,
            ax=ax,
            legend=False,
        )
        ax.set(xscale="log", title=level, xlabel="", ylabel="")
        _count_axis(ax)
    for ax in axes[len(levels) :]:
        ax.set_visible(False)
    stars = False
    for cell in cells:
        ax = axes[levels.index(cell.level)]
        colour = palette[str(cell.recurrences)]
        sizes = runs[(runs["level"] == cell.level) & (runs["r"] == str(cell.recurrences))]
        if cell.coefficients is not None:
            span = np.geomspace(sizes["n_total"].min(), sizes["n_total"].max(), CURVE_POINTS)
            ax.plot(span, cell.loss_at(span), color=colour, linewidth=1.2)
        if cell.inside:
            ax.plot(
                *(cell.n_total, cell.loss),
                marker="*",
                markersize=13,
                color=colour,
                markeredgecolor="black",
                markeredgewidth=0.6,
            )
            stars = True
    _recurrence_legend(figure, palette, star=stars)
    figure.supxlabel("unique parameters N_once + N_rec")
    figure.supylabel("validation loss (nats per token)")
    if levels == [ALL_RUNS]:
        figure.suptitle("loss against size")
    else:
        kinds = dict.fromkeys("budget" if is_budget(level) else "token count" for level in levels)
        figure.suptitle(f"loss at equal {' or '.join(kinds)}")
    return figure


def effective_size_figure(fit: FitResult) -> Figure:
    """Loss less its data term against N_once + r^phi N_rec: one curve if the law holds."""
    assert fit.law is not None
    law = fit.law
    runs = _categorised(fit.runs)
    runs["effective"] = law.effective_size(runs["recurrences"], runs["n_once"], n_rec=runs["n_rec"])
    runs["size_loss"] = runs["loss"] - law.B * runs["tokens"] ** -law.beta
    span = np.geomspace(runs["effective"].min(), runs["effective"].max(), CURVE_POINTS)
    with sns.axes_style(STYLE["style"]):
        figure = Figure(figsize=(2.2 * PANEL, 1.5 * PANEL), layout="constrained")
        ax = figure.subplots()
    curve = law.E + law.A * span**-law.alpha
    ax.plot(span, curve, color="0.35", linewidth=1.2, zorder=1, label="E + A N_eff^-alpha")
    sns.scatterplot(
        runs, x="effective", y="size_loss", hue="r", style="r", palette=_palette(runs), ax=ax
    )
    ax.set(
        xscale="log",
        xlabel=f"effective size N_once + r^{law.phi:.3f} N_rec",
        ylabel="loss - B D^-beta (nats per token)",
    )
    _count_axis(ax)
    ax.legend(title="r")
    doubt = "" if fit.identifiable else " (not identifiable: the best fit, unsupported)"
    figure.suptitle(f"loss against effective size, phi = {law.phi:.3f}{doubt}")
    return figure


def residual_figure(fit: FitResult) -> Figure:
    """Residuals in nats by recurrence count, one mark per run, coloured by budget."""
    runs = _categorised(fit.runs)
    runs["residual"] = fit.residuals_nats
    order = _recurrence_order(runs)
    levels = sorted(runs["level"].unique(), key=level_order)
    with sns.axes_style(STYLE["style"]):
        figure = Figure(figsize=(2.2 * PANEL, 1.4 * PANEL), layout="constrained")
        ax = figure.subplots()
    ax.axhline(0, color="0.35", linewidth=1)
    sns.stripplot(
        runs,
        x="r",
        y="residual",
        order=order,
        hue="level",
        hue_order=levels,
        palette=sns.color_palette("viridis", len(levels)),
        dodge=len(levels) > 1,
        jitter=False,
        ax=ax,
    )
    ax.set(xlabel="recurrences r", ylabel="L - L_hat (nats per token)")
    sns.move_legend(ax, "upper left", bbox_to_anchor=(1, 1), title="")
    figure.suptitle("residuals by recurrence count")
    return figure


def phi_figure(analysis: Analysis) -> Figure:
    """What the data say of phi: the bootstrap's distribution above, the profile below."""
    fit = analysis.fit
    interval = analysis.intervals.intervals[analysis.kind]
    profile = profile_phi(Fitted.of(fit), level=interval.level)
    bootstrap = analysis.intervals.bootstrap
    percent = f"{100 * interval.level:g} %"
    with sns.axes_style(STYLE["style"]):
        figure = Figure(figsize=(2.0 * PANEL, 1.9 * PANEL), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True)
    if bootstrap is not None and len(bootstrap.phi):
        # Bins over the bulk: a few far resamples would otherwise make thousands of them.
        shown = np.quantile(bootstrap.phi, [0.005, 0.995])
        sns.histplot(
            x=bootstrap.phi,
            ax=upper,
            stat="density",
            color="C0",
            alpha=0.5,
            bins=HISTOGRAM_BINS,
            binrange=(float(shown[0]), float(shown[1])) if shown[1] > shown[0] else None,
        )
    upper.set(ylabel="density", title="block bootstrap over cells")
    lower.plot(profile.phi, profile.excess, color="C0")
    lower.axhline(profile.threshold, color="0.35", linestyle="--", linewidth=1)
    lower.set(
        xlabel="phi",
        ylabel="2 (S(phi) - S) / dispersion",
        title=f"profile of the objective (dashed: {percent}, runs taken as independent)",
        ylim=(0, 3 * profile.threshold),
    )
    label = f"{percent} interval: {DESCRIPTIONS[interval.kind]}"
    for ax in (upper, lower):
        _mark_interval(ax, fit, interval.low, interval.high, label)
    if upper.get_legend_handles_labels()[0]:
        upper.legend(loc="lower center", bbox_to_anchor=(0.5, 1.15), fontsize="small")
    figure.suptitle(f"phi = {fit.phi:.3f}")
    return figure


def _mark_interval(
    ax: Axes, fit: FitResult, low: float | None, high: float | None, label: str
) -> None:
    assert fit.phi is not None
    ax.axvline(fit.phi, color="black", linewidth=1)
    if low is not None and high is not None:
        ax.axvspan(low, high, color="C1", alpha=0.18, zorder=0, label=label)


def _count_axis(ax: Axes) -> None:
    """Ticks of a logarithmic axis of parameters as 20M, 50M, 100M."""
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(EngFormatter(sep=""))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _categorised(runs: pd.DataFrame) -> pd.DataFrame:
    """A copy with r as text, the unique parameters, and levels that are few enough to draw."""
    table = runs.copy()
    table["r"] = table["recurrences"].astype(str)
    table["n_total"] = table["n_once"] + table["n_rec"]
    if "level" not in table or table["level"].nunique() > MAX_PANELS:
        table["level"] = ALL_RUNS
    return table


def _recurrence_order(runs: pd.DataFrame) -> list[str]:
    return [str(r) for r in sorted(runs["recurrences"].unique())]


def _palette(runs: pd.DataFrame) -> dict[str, tuple[float, float, float]]:
    order = _recurrence_order(runs)
    return dict(zip(order, sns.color_palette("colorblind", len(order)), strict=True))


def _recurrence_legend(
    figure: Figure, palette: Mapping[str, tuple[float, float, float]], *, star: bool
) -> None:
    handles = [
        Line2D([], [], marker="o", linestyle="", color=colour, label=f"r = {r}")
        for r, colour in palette.items()
    ]
    if star:
        handles.append(
            Line2D(
                *([], []),
                marker="*",
                markersize=11,
                linestyle="",
                color="white",
                markeredgecolor="black",
                label="minimum",
            )
        )
    figure.legend(handles=handles, loc="outside right upper")
