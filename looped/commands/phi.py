"""Runs -> phi: what one recurrence is worth, its interval, and whether to believe it.

looped phi runs/                          every recipe under a sweep directory
looped phi runs/ more.csv best.ckpt       directories, tables and checkpoints may be mixed
looped phi --published                    the published runs: no training needed
"""

import argparse
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from looped.commands.output import (
    STDOUT,
    check_file,
    check_folder,
    check_json,
    write_json,
    write_text,
)
from looped.errors import UserError

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from looped.scaling.analysis import Analysis
    from looped.scaling.coverage import Coverage
    from looped.scaling.runs import RunPool

# Named here as well as in looped.scaling, so that --help need not import numpy; a test holds the
# two together.
ESTIMATORS = ("huber", "least_squares")
INTERVALS = ("jackknife", "cluster", "percentile", "studentised", "wild", "profile", "wald")
PUBLISHED = ("baseline", "truncated")
REFERENCES = ("plain", "unshared", "injected")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `looped phi`."""
    add_source_arguments(parser)
    parser.add_argument(
        "--published",
        nargs="?",
        type=published_recipe,
        const=True,
        metavar="RECIPE",
        help="fit the published runs (arXiv 2604.21106) instead, of recipe "
        f"{' or '.join(PUBLISHED)} (default: {PUBLISHED[0]})",
    )
    parser.add_argument(
        "--recipe", action="append", help="fit this recipe only; may be repeated (default: all)"
    )
    add_fit_arguments(parser)
    parser.add_argument(
        "--coverage",
        type=int,
        metavar="N",
        help="simulate N data sets on the design of the runs, with independent and with "
        "cell-correlated noise, and report how often each kind of interval holds the truth "
        "(the published runs: about 1 s a data set)",
    )
    parser.add_argument(
        "--noise",
        type=float,
        metavar="NATS",
        help="of --coverage: standard deviation of the loss (default: the fit's residual)",
    )
    parser.add_argument(
        "--workers", type=int, default=2, help="processes that share --coverage (default: 2)"
    )
    parser.add_argument(
        "--json", metavar="FILE", help=f"write the result as JSON; {STDOUT} = standard output"
    )
    parser.add_argument(
        "--table",
        metavar="FILE",
        help="write the runs that were fitted, each with its loss, as a CSV table for a SOURCE; "
        f"{STDOUT} = standard output",
    )
    parser.add_argument("--out", metavar="DIR", type=Path, help="write figures into this directory")


def published_recipe(text: str) -> str:
    """The value of --published; anything else is likely a source that stands behind it."""
    if text not in PUBLISHED:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no published recipe ({' or '.join(PUBLISHED)}); to fit runs of your own, "
            "leave out --published"
        )
    return text


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the runs come from; shared with `looped compare` and `looped equivalent`."""
    parser.add_argument(
        "sources",
        nargs="*",
        metavar="SOURCE",
        type=Path,
        help="sweep or run directory, checkpoint (.ckpt), or table (.csv with the columns "
        "recurrences, n_once, n_rec, tokens, loss)",
    )
    parser.add_argument("--convention", help="fit only runs whose FLOPs were counted so")
    parser.add_argument("--fingerprint", help="fit only runs validated on this data")
    parser.add_argument("--tokenizer", help="fit only runs of this tokenizer")
    parser.add_argument(
        "--reference",
        choices=REFERENCES,
        help="the runs of r = 1 that looped ones are measured against: plain ones, or a control in "
        f"their place (default: {REFERENCES[0]}, see docs/beyond-phi.md)",
    )


def add_fit_arguments(parser: argparse.ArgumentParser) -> None:
    """How the law is fitted; shared with `looped compare` and `looped equivalent`."""
    parser.add_argument(
        "--match-budgets",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="of r = 1 runs that a recipe shares with others, use those of its own budgets only "
        "(default: yes)",
    )
    parser.add_argument(
        "--estimator", choices=ESTIMATORS, default=ESTIMATORS[0], help="(default: huber)"
    )
    parser.add_argument(
        "--delta", type=float, default=1e-3, help="of Huber's function, in log L (default: 1e-3)"
    )
    parser.add_argument(
        "--fix",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="hold phi, alpha, beta or E; may be repeated",
    )
    parser.add_argument(
        "--interval",
        choices=INTERVALS,
        default=INTERVALS[0],
        help=f"kind of the headline's interval (default: {INTERVALS[0]}, see docs/intervals.md)",
    )
    parser.add_argument("--level", type=float, default=0.95, help="of intervals (default: 0.95)")
    parser.add_argument(
        "--resamples", type=int, default=1000, help="of each bootstrap (default: 1000)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap (default: 0)")


def run(arguments: argparse.Namespace) -> int:
    """Read, fit, print, write."""
    import pandas as pd
    from rich.console import Console

    from looped.scaling.report import print_report

    check_options(arguments)
    fix = parse_fix(arguments.fix)
    pool = read_pool(arguments)
    names = chosen_recipes(arguments, arguments.recipe or []) or pool.recipes
    analyses = analyse_recipes(pool, names, arguments, fix=fix)
    # What a machine reads on standard output must be alone there.
    console = Console(stderr=STDOUT in (arguments.json, arguments.table), highlight=False)
    if arguments.table:
        from looped.scaling.run_tables import table_text

        fitted = pd.concat(
            pool.of_recipe(name, match_budgets=arguments.match_budgets) for name in analyses
        )
        runs = fitted[~fitted.index.duplicated()].sort_index()
        write_text("--table", arguments.table, text=table_text(runs))
    if arguments.coverage is None:  # before the report, whose reader may have enough of it
        _write_results(arguments, pool, analyses, coverage={})
    print_report(console, analyses, pool.excluded, pool.warnings)
    if arguments.coverage is not None:
        coverage = _coverage(arguments, analyses, console)
        _write_results(arguments, pool, analyses, coverage=coverage)
    if arguments.out:
        _write_figures(arguments.out, analyses, console)
    return 0


def _write_results(
    arguments: argparse.Namespace,
    pool: "RunPool",
    analyses: "dict[str, Analysis]",
    *,
    coverage: "dict[str, list[Coverage]]",
) -> None:
    if arguments.json:
        from looped.scaling.report_json import report_json

        content = report_json(analyses, pool.excluded, coverage=coverage, warnings=pool.warnings)
        write_json(arguments.json, content)


def analyse_recipes(
    pool: "RunPool",
    names: Iterable[str],
    arguments: argparse.Namespace,
    *,
    fix: dict[str, float],
) -> "dict[str, Analysis]":
    """Fit recipes by the options of `add_fit_arguments`, each once, in the order named."""
    from looped.scaling.analysis import analyse

    return {
        name: analyse(
            pool.of_recipe(name, match_budgets=arguments.match_budgets),
            other_runs=other_plain_runs(pool, name, match_budgets=arguments.match_budgets),
            estimator=arguments.estimator,
            delta=arguments.delta,
            fix=fix,
            kind=arguments.interval,
            level=arguments.level,
            resamples=arguments.resamples,
            seed=arguments.seed,
        )
        for name in dict.fromkeys(names)
    }


def parse_fix(texts: list[str]) -> dict[str, float]:
    """`["phi=1"]` -> {"phi": 1.0}."""
    from looped.scaling.fit import check_fixed

    fix: dict[str, float] = {}
    for text in texts:
        name, _, written = text.partition("=")
        name = name.strip()
        try:
            value = float(written)
        except ValueError:
            raise UserError(f"--fix {text}: write it as NAME=VALUE, such as phi=1") from None
        try:
            check_fixed(name, value)
        except UserError as error:
            raise UserError(f"--fix {text}: {error}") from error
        if name in fix:
            raise UserError(f"--fix {text}: {name} is held already, at {fix[name]:g}: name it once")
        fix[name] = value
    return fix


def check_options(arguments: argparse.Namespace) -> None:
    """Refuse options that cannot be met before anything is read, fitted, printed or written.

    For `looped phi`, `report`, `compare` and `equivalent`; each has some of them.
    """
    from looped.scaling.fit import check_delta
    from looped.scaling.intervals import check_resampling

    check_resampling(arguments.level, resamples=arguments.resamples, seed=arguments.seed)
    check_delta(arguments.delta)
    options = vars(arguments)
    if options.get("coverage") is not None:
        from looped.scaling.coverage import check_study

        check_study(arguments.coverage, noise=arguments.noise, workers=arguments.workers)
    elif options.get("noise") is not None:
        raise UserError("--noise is that of a simulation: give --coverage too")
    check_json(options.get("json"))
    check_file("--table", options.get("table"))
    if options.get("table") is not None and options["table"] == options["json"]:
        raise UserError(f"--json and --table both write to {options['json']}: choose two places")
    if options.get("out") is not None:
        check_folder(arguments.out, "--out")


def chosen_recipes(arguments: argparse.Namespace, named: list[str]) -> list[str]:
    """Recipes of --recipe, else that of --published; empty where neither names one."""
    published = arguments.published
    if isinstance(published, str) and any(name != published for name in named):
        raise UserError(
            f"--published {published} and --recipe {' '.join(named)} name different recipes: "
            "leave out one of them"
        )
    if named or not published:
        return named
    return [published if isinstance(published, str) else PUBLISHED[0]]


def read_pool(arguments: argparse.Namespace) -> "RunPool":
    """The runs of the given sources, or the published ones."""
    from looped.scaling.published import published_runs
    from looped.scaling.runs import read_runs

    if arguments.published:
        if arguments.sources:
            raise UserError(f"--published stands alone: leave out {arguments.sources[0]}")
        for name in ("convention", "fingerprint", "tokenizer", "reference"):
            if getattr(arguments, name) is not None:
                raise UserError(f"--published stands alone: leave out --{name}")
        return published_runs()
    if not arguments.sources:
        raise UserError("no runs given: name a directory, a .ckpt or .csv file, or --published")
    return read_runs(
        arguments.sources,
        convention=arguments.convention,
        fingerprint=arguments.fingerprint,
        tokenizer=arguments.tokenizer,
        reference=arguments.reference or "plain",
    )


def other_plain_runs(
    pool: "RunPool", name: str, *, match_budgets: bool
) -> "dict[str, pd.DataFrame]":
    """The same recipe with the other choice of r = 1 runs, where that makes a difference."""
    own, other = (
        pool.of_recipe(name, match_budgets=match) for match in (match_budgets, not match_budgets)
    )
    change = "r = 1 runs of all budgets" if match_budgets else "r = 1 runs of its budgets only"
    return {change: other} if len(other) != len(own) else {}


def _coverage(
    arguments: argparse.Namespace, analyses: "dict[str, Analysis]", console: "Console"
) -> "dict[str, list[Coverage]]":
    """Coverage of every recipe that tells phi, printed as it is measured."""
    from looped.scaling.report import coverage_table

    results = {}
    for name, analysis in analyses.items():
        if analysis.fit.phi is None:
            console.print(f"coverage of {name}: not without phi", soft_wrap=True)
            continue
        results[name] = _coverage_of(arguments, analysis)
        console.print(coverage_table(results[name], level=arguments.level))
    return results


def _coverage_of(arguments: argparse.Namespace, analysis: "Analysis") -> "list[Coverage]":
    from rich.console import Console
    from rich.progress import Progress

    from looped.scaling.coverage import measure_coverage

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("coverage")
        return measure_coverage(
            analysis.fit,
            data_sets=arguments.coverage,
            noise=arguments.noise,
            level=arguments.level,
            resamples=arguments.resamples,
            seed=arguments.seed,
            workers=arguments.workers,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )


def _write_figures(folder: Path, analyses: "dict[str, Analysis]", console: "Console") -> None:
    from looped.scaling.figures import write_figures
    from looped.scaling.worth_figures import write_worth_figures

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in chain(write_figures(analyses, folder), write_worth_figures(analyses, folder)):
            console.print(f"figure   {path}", soft_wrap=True)
    except OSError as error:
        raise UserError(f"--out {folder} cannot be written: {error.strerror}") from error
