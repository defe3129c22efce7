"""One self-contained HTML file from analyses, figures and tables, by what lies in template/."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from looped import __version__
from looped.atomic_write import write_atomically
from looped.errors import UserError
from looped.report.answer import Answer
from looped.report.curves import TrainedRun, read_trained_run
from looped.report.explorer import explorer_data
from looped.report.origin import origin
from looped.report.pictures import FOLDER, make_picture, recipe_pictures
from looped.report.recipes_figure import recipes_figure
from looped.report.side_by_side import PHI, SideBySide
from looped.report.tables import recurrence_rows, runs_table
from looped.scaling.analysis import Analysis
from looped.scaling.figure_style import ALL_RUNS, Palette, categorised, palette_of
from looped.scaling.figures import file_stems
from looped.scaling.intervals import DESCRIPTIONS
from looped.scaling.levels import is_budget
from looped.scaling.quantity import MINUS, with_minus
from looped.scaling.report_json import law_json
from looped.scaling.report_tables import ends
from looped.scaling.runs import RunPool
from looped.scaling.worth_figures import gains_figure, gap_figure, has_shares

PAGE = "index.html"
GENERATOR = "looped report"
"""By which a page of ours is known: no other file is ever written over."""

SYMBOLS = {"E": "E", "A": "A", "alpha": "\u03b1", "B": "B", "beta": "\u03b2"}


def write_page(
    pool: RunPool,
    analyses: Mapping[str, Analysis],
    *,
    out: Path,
    command: str,
    side_by_side: SideBySide | None = None,
) -> Path:
    """Write the page and its figures.

    Args:
        pool: the runs that were read.
        analyses: by recipe, in the order of the page; at least one.
        out: directory of the page; made when missing.
        command: how the page was asked for, as typed.
        side_by_side: the recipes compared; null with only one.

    Returns:
        The page, written last: it never shows figures that are not there.

    Raises:
        UserError: `out` holds an index.html of other origin.
        OSError: something cannot be written.
    """
    page = out / PAGE
    refuse_foreign(page)
    (out / FOLDER).mkdir(parents=True, exist_ok=True)
    palette = palette_of(pool.table["recurrences"])
    trained = {
        path: run
        for path in pool.table["path"].dropna()
        if (run := read_trained_run(Path(path))) is not None
    }
    stems = file_stems(analyses)
    sections = [
        _section(name, analysis, trained, stem=stems[name], palette=palette, out=out)
        for name, analysis in analyses.items()
    ]
    compared = None
    if side_by_side is not None:
        figure = recipes_figure(analyses, side_by_side.comparisons, against=side_by_side.against)
        picture = make_picture(figure, kind="recipes", name="recipes", out=out)
        compared = {
            "against": side_by_side.against,
            "percent": _percent(analyses),
            "picture": picture,
            "rows": side_by_side.rows,
        }
    html = (
        _environment()
        .get_template("page.html")
        .render(
            generator=f"{GENERATOR} {__version__}",
            style=_verbatim("page.css"),
            script=_verbatim("page.js"),
            answers=[Answer.of(name, analysis) for name, analysis in analyses.items()],
            warnings=_warnings(pool, analyses, side_by_side),
            explorer=explorer_data(analyses, palette=palette),
            side_by_side=compared,
            worth=_worth(analyses, palette=palette, out=out),
            sections=sections,
            table=runs_table(pool.table, analyses),
            excluded=pool.excluded,
            origin=origin(pool, analyses, trained=list(trained.values()), command=command),
        )
    )
    write_atomically(page, html)
    return page


def refuse_foreign(page: Path) -> None:
    """Refuse to write over a file that is no page of ours.

    Raises:
        UserError: naming it.
    """
    if not page.exists():
        return
    if page.is_file() and GENERATOR in page.read_text(encoding="utf-8", errors="replace")[:2000]:
        return
    raise UserError(f"{page} is not a page of looped report: choose another --out")


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("looped.report", "template"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["typeset"] = typeset
    return environment


def typeset(text: str) -> Markup:
    """A text made for the terminal: powers of r raised, options in one piece, minus signs."""
    html = with_minus(str(escape(text)))
    html = re.sub(rf"\br\^([-{MINUS}]?\d+(?:\.\d+)?)", r"<var>r</var><sup>\1</sup>", html)
    return Markup(re.sub(r"--[a-z][a-z_-]*", r'<code class="unbroken">\g<0></code>', html))


def _verbatim(name: str) -> Markup:
    """A file that stands in the page as it is."""
    return Markup((Path(__file__).parent / "template" / name).read_text(encoding="utf-8"))


def _percent(analyses: Mapping[str, Analysis]) -> str:
    first = next(iter(analyses.values()))
    return f"{100 * first.intervals.intervals[first.kind].level:g} %"


def _warnings(
    pool: RunPool, analyses: Mapping[str, Analysis], side_by_side: SideBySide | None
) -> list[str]:
    """Of the pool, of each recipe (with its name where there are several), of comparisons."""
    warnings = list(pool.warnings)
    for name, analysis in analyses.items():
        prefix = f"{name}: " if len(analyses) > 1 else ""
        warnings += [prefix + warning for warning in analysis.warnings]
    if side_by_side is not None:
        for found in side_by_side.comparisons.values():
            warnings += found.warnings
    return list(dict.fromkeys(warnings))


def _section(
    name: str,
    analysis: Analysis,
    trained: Mapping[str, TrainedRun],
    *,
    stem: str,
    palette: Palette,
    out: Path,
) -> dict[str, Any]:
    fit = analysis.fit
    runs = [
        (int(r), trained[path])
        for r, path in zip(fit.runs["recurrences"], fit.runs["path"], strict=True)
        if path in trained
    ]
    levels = [level for level in categorised(fit.runs)["level"].unique() if level != ALL_RUNS]
    kinds = {is_budget(level) for level in levels}
    return {
        "name": name,
        "element": f"recipe-{stem}",
        "levels": "budgets" if True in kinds else "tokens" if kinds else "none",
        "percent": _percent({name: analysis}),
        "figures": _figures(analysis),
        "pictures": list(recipe_pictures(analysis, runs, stem=stem, palette=palette, out=out)),
        "recurrences": recurrence_rows(analysis),
        "without_curve": fit.num_runs - sum(run.has_curve for _, run in runs),
    }


def _figures(analysis: Analysis) -> list[list[tuple[str, str]]]:
    """The numbers at the head of a recipe's section: what was found, then the law."""
    fit, interval = analysis.fit, analysis.intervals.intervals[analysis.kind]
    found = []
    if fit.phi is not None:
        found.append((PHI + " (held)" * ("phi" in fit.held), f"{fit.phi:.3f}"))
        percent = f"{100 * interval.level:g} %"
        found.append((f"{percent}, {DESCRIPTIONS[interval.kind]}", ends(interval)))
    for test in analysis.tests.values():
        if test is not None:
            p = test.p if test.p_cells is None else test.p_cells
            found.append((f"p of {PHI} = {test.phi:g}", f"{p:.1g}"))
    found += [("runs", str(fit.num_runs)), ("cells", str(fit.num_cells))]
    law = [
        (SYMBOLS[name], f"{value:.4g}")
        for name, value in law_json(fit).items()
        if value is not None
    ]
    if fit.rmse is not None:
        law.append(("residual (nats)", f"{fit.rmse:.4f}"))
    if analysis.noise is not None:
        law.append(("between seeds (nats)", f"{analysis.noise.noise:.4f}"))
        if analysis.noise.shared is not None and analysis.noise.err_together(interval.level):
            law.append(("not common to a seed (nats)", f"{analysis.noise.shared.own:.4f}"))
        elif analysis.noise.p is not None:
            law.append(("p that the law misses no more", f"{analysis.noise.p:.1g}"))
    return [found, law]


def _worth(
    analyses: Mapping[str, Analysis], *, palette: Palette, out: Path
) -> dict[str, Any] | None:
    """What each recurrence count is worth without the power law; null where no recipe tells."""
    worths = {name: a.worth for name, a in analyses.items() if a.worth is not None}
    if not worths:
        return None
    figures = {"worth": gains_figure(worths, palette=palette)}
    gaps = {name: a.gap for name, a in analyses.items() if has_shares(a.gap)}
    if gaps:
        figures["loss-gap"] = gap_figure(gaps)
    return {
        "pictures": [
            make_picture(figure, kind=kind, name=kind, out=out) for kind, figure in figures.items()
        ],
        "sentences": {name: worth.sentence for name, worth in worths.items()},
    }
