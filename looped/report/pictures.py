"""The figures of the page: drawn once, written as SVG and PNG, and set into the page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup
from matplotlib.figure import Figure

from looped.report.curves import TrainedRun
from looped.report.curves_figure import curves_figure
from looped.report.inline_svg import inline_svg
from looped.scaling.analysis import Analysis
from looped.scaling.compute_optimal_figure import compute_optimal_figure
from looped.scaling.figure_style import Palette, figure_style
from looped.scaling.figures import recipe_figures, save

FOLDER = "figures"
FORMATS = ("svg", "png")

TALL_INCHES = 3.5
"""From here on a figure is as high as two."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One figure on the page.

    Attributes:
        kind: what it shows, such as `isoflop`; the template has its heading and caption.
        element: with which the ids of its element begin.
        svg: the element.
        files: where the figure lies in each format, relative to the page.
        tall: whether two others find room beside it.
    """

    kind: str
    element: str
    svg: Markup
    files: dict[str, str]
    tall: bool


def make_picture(figure: Figure, *, kind: str, name: str, out: Path) -> Picture:
    """Write a figure in every format below `out`, the page's directory, and set it into the page.

    Args:
        figure: made in `figure_style`.
        kind: as of `Picture`.
        name: of its files without their suffix; safe as `file_stems` gives it, and unique.
        out: where `FOLDER` exists.

    Raises:
        OSError: a file cannot be written.
    """
    with figure_style():
        figure.draw_without_rendering()
    figure.set_layout_engine("none")  # places are found: they need not be sought for every format
    files = {form: f"{FOLDER}/{name}.{form}" for form in FORMATS}
    for file in files.values():
        save(figure, out / file)
    drawn = (out / files["svg"]).read_text(encoding="utf-8")
    element = f"figure-{name}"
    return Picture(
        kind=kind,
        element=element,
        svg=inline_svg(drawn, name=element),
        files=files,
        tall=figure.get_figheight() > TALL_INCHES,
    )


def recipe_pictures(
    analysis: Analysis,
    trained: Sequence[tuple[int, TrainedRun]],
    *,
    stem: str,
    palette: Palette,
    out: Path,
) -> Iterator[Picture]:
    """Every figure that the data of one recipe allow."""
    figures: dict[str, Figure | None] = {
        **recipe_figures(analysis, palette=palette),
        "compute-optimal": compute_optimal_figure(analysis, palette=palette),
        "training-curves": curves_figure(trained, palette=palette),
    }
    for kind, figure in figures.items():
        if figure is not None:
            yield make_picture(figure, kind=kind, name=f"{stem}-{kind}", out=out)
