"""Runs -> the page a person opens: one HTML file, and its figures as SVG and PNG.

looped report runs/ --out report/             open report/index.html
looped report runs/ more.csv best.ckpt        directories, tables and checkpoints may be mixed
looped report --published                     the published runs: no training needed
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from looped.commands.phi import (
    add_fit_arguments,
    add_source_arguments,
    analyse_recipes,
    check_options,
    parse_fix,
    read_pool,
)
from looped.errors import UserError

if TYPE_CHECKING:
    from looped.report.side_by_side import SideBySide
    from looped.scaling.analysis import Analysis
    from looped.scaling.runs import RunPool

USUAL_REFERENCE = "baseline"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `looped report`."""
    add_source_arguments(parser)
    parser.add_argument(
        "--published",
        action="store_true",
        help="the published runs (arXiv 2604.21106) instead of SOURCE",
    )
    parser.add_argument(
        "--recipe", action="append", help="show this recipe only; may be repeated (default: all)"
    )
    parser.add_argument(
        "--against",
        metavar="RECIPE",
        help="compare the other recipes with this one (default: baseline where there is one, else "
        "the first)",
    )
    add_fit_arguments(parser)
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("report"),
        help="directory of the page (default: %(default)s); an earlier page there is replaced",
    )


def run(arguments: argparse.Namespace) -> int:
    """Read, fit, draw, write."""
    from rich.console import Console

    from looped.report.answer import Answer
    from looped.report.page import PAGE, refuse_foreign, write_page

    check_options(arguments)
    fix = parse_fix(arguments.fix)
    refuse_foreign(arguments.out / PAGE)
    pool = read_pool(arguments)
    names = _ordered(list(dict.fromkeys(arguments.recipe or pool.recipes)), arguments.against)
    analyses = analyse_recipes(pool, names, arguments, fix=fix)
    side_by_side = _compare(pool, analyses, arguments, fix=fix) if len(names) > 1 else None
    try:
        page = write_page(
            pool,
            analyses,
            out=arguments.out,
            command=arguments.command_line,
            side_by_side=side_by_side,
        )
    except OSError as error:
        raise UserError(f"--out {arguments.out} cannot be written: {error.strerror}") from error
    console = Console(highlight=False)
    for name, analysis in analyses.items():
        console.print(f"{name}: {Answer.of(name, analysis).sentence}", soft_wrap=True, markup=False)
    if pool.excluded:
        console.print(f"left out: {len(pool.excluded)} (the page lists them)", soft_wrap=True)
    console.print(f"page     {page}", soft_wrap=True, markup=False)
    return 0


def _ordered(names: list[str], against: str | None) -> list[str]:
    """The recipe that the others are compared with, then the others."""
    if against is not None and against not in names:
        raise UserError(f"--against {against}: no such recipe on this page: {', '.join(names)}")
    first = against or (USUAL_REFERENCE if USUAL_REFERENCE in names else names[0])
    return [first, *(name for name in names if name != first)]


def _compare(
    pool: "RunPool",
    analyses: "dict[str, Analysis]",
    arguments: argparse.Namespace,
    *,
    fix: dict[str, float],
) -> "SideBySide":
    """Every other recipe with the first; what cannot be compared says why and stops nothing."""
    from looped.report.side_by_side import SideBySide
    from looped.scaling.compare import compare

    against, *others = analyses
    found = SideBySide(against=against)
    for name in others:
        try:
            found.comparisons[name] = compare(
                pool,
                against,
                second=name,
                estimator=arguments.estimator,
                delta=arguments.delta,
                fix=fix,
                level=arguments.level,
                resamples=arguments.resamples,
                seed=arguments.seed,
                match_budgets=arguments.match_budgets,
            )
        except UserError as error:
            found.why_not[name] = str(error)
    return found
