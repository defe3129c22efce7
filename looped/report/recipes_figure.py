"""Recipes side by side: phi of each, and what changed against the one they are compared with."""

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from looped.scaling.analysis import Analysis
from looped.scaling.compare import Comparison
from looped.scaling.figure_style import INK, MUTED, figure_style, new_figure

Row = tuple[float | None, float | None, float | None]
"""Value and both ends of its interval."""


def recipes_figure(
    analyses: Mapping[str, Analysis], comparisons: Mapping[str, Comparison], *, against: str
) -> Figure:
    """Panels with a row per recipe: phi, and its change, the offset's and the best loss's.

    Args:
        analyses: by recipe, in the order of the rows.
        comparisons: of recipes with `against`; a recipe that could not be compared has none.
        against: the recipe they are compared with.
    """
    names = list(analyses)

    def phi(name: str) -> Row:
        interval = analyses[name].intervals.intervals[analyses[name].kind]
        return analyses[name].fit.phi, interval.low, interval.high

    def delta_phi(name: str) -> Row:
        if name not in comparisons:
            return None, None, None
        found = comparisons[name]
        low, high = found.jackknife or (found.low, found.high)
        return found.delta_phi, low, high

    def offset(name: str) -> Row:
        differences = comparisons[name].laws["offset"].differences if name in comparisons else {}
        if "offset" not in differences:
            return None, None, None
        low, high = differences["offset"].simultaneous or (None, None)
        return differences["offset"].value, low, high

    def loss(name: str) -> Row:
        found = comparisons[name].loss if name in comparisons else None
        if found is None:
            return None, None, None
        low, high = found.ends or (None, None)
        return found.value, low, high

    with figure_style():
        figure = new_figure(height=0.85 + 0.3 * len(names), wspace=0.1)
        axes = figure.subplots(1, 4, sharey=True)
        _panel(axes[0], names, phi, title=r"$\varphi$")
        _panel(axes[1], names, delta_phi, title=r"$\Delta\varphi$", reference=against)
        _panel(axes[2], names, offset, title=r"$\Delta$ offset", reference=against)
        _panel(axes[3], names, loss, title=r"$\Delta$ best loss", reference=against)
        axes[0].set_yticks(range(len(names)), labels=names)
        axes[0].set_ylim(len(names) - 0.5, -0.5)
    return figure


def _panel(
    ax: Axes,
    names: Sequence[str],
    row: Callable[[str], Row],
    *,
    title: str,
    reference: str | None = None,
) -> None:
    for place, name in enumerate(names):
        value, low, high = (0.0, None, None) if name == reference else row(name)
        if value is None:
            continue
        if low is not None and high is not None:
            ax.plot([low, high], [place, place], color=INK, linewidth=1.2)
        filled = INK if name != reference else "none"
        ax.plot(value, place, marker="o", color=filled, markeredgecolor=INK, markeredgewidth=1)
    if reference is not None:
        ax.axvline(0, color=MUTED, linewidth=0.8, zorder=0)
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)
    ax.locator_params(axis="x", nbins=3)
    ax.set_title(title)
