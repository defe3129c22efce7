"""Two recipes -> delta phi: did the loop get better, or only the training?

  looped compare baseline truncated runs/
  looped compare baseline truncated --published

Both recipes are measured against the same plain runs (r = 1), which are resampled once for both.
"""

import argparse

from looped.commands.output import STDOUT, write_json
from looped.commands.phi import (
    ESTIMATORS,
    add_source_arguments,
    check_options,
    parse_fix,
    read_pool,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `looped compare`."""
    parser.add_argument("first", metavar="A", help="recipe to compare with")
    parser.add_argument("second", metavar="B", help="recipe to judge")
    add_source_arguments(parser)
    parser.add_argument(
        "--published", action="store_true", help="the published runs instead of SOURCE"
    )
    parser.add_argument(
        "--match-budgets",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="use only budgets at which both recipes have looped runs (default: yes)",
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
        help="hold alpha, beta or E in both fits; may be repeated",
    )
    parser.add_argument("--level", type=float, default=0.95, help="of intervals (default: 0.95)")
    parser.add_argument(
        "--resamples", type=int, default=1000, help="of the joint bootstrap (default: 1000)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap (default: 0)")
    parser.add_argument(
        "--json", metavar="FILE", help=f"write the result as JSON; {STDOUT} = standard output"
    )


def run(arguments: argparse.Namespace) -> int:
    """Read, fit both, compare, print."""
    from rich.console import Console

    from looped.scaling.compare import compare
    from looped.scaling.compare_report import as_json, report

    check_options(arguments)
    fix = parse_fix(arguments.fix)
    pool = read_pool(arguments)
    result = compare(
        pool,
        arguments.first,
        second=arguments.second,
        estimator=arguments.estimator,
        delta=arguments.delta,
        fix=fix,
        level=arguments.level,
        resamples=arguments.resamples,
        seed=arguments.seed,
        match_budgets=arguments.match_budgets,
    )
    console = Console(stderr=arguments.json == STDOUT, highlight=False)
    lines = report(result, arguments.first, second=arguments.second)
    lines += [f"warning: {warning}" for warning in pool.warnings]
    for line in lines:
        console.print(line, soft_wrap=True, markup=False)
    if pool.excluded:
        console.print(f"left out: {len(pool.excluded)} (looped phi lists them)", soft_wrap=True)
    if arguments.json:
        content = as_json(result, arguments.first, second=arguments.second)
        write_json(arguments.json, content | {"warnings": pool.warnings})
    return 0
