"""Two recipes -> delta phi: did the loop get better, or only the training?

  looped compare baseline truncated runs/
  looped compare baseline truncated --published

Both recipes are measured against the same plain runs (r = 1), which are resampled once for both.
"""

import argparse
from typing import TYPE_CHECKING

from looped.commands.phi import (
    ESTIMATORS,
    STDOUT,
    add_source_arguments,
    check_options,
    read_pool,
    write_json,
)

if TYPE_CHECKING:
    from looped.scaling.compare import Comparison


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

    check_options(arguments)
    pool = read_pool(arguments)
    result = compare(
        pool,
        arguments.first,
        second=arguments.second,
        estimator=arguments.estimator,
        delta=arguments.delta,
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


def report(result: "Comparison", first: str, *, second: str) -> list[str]:
    """The comparison in words, line by line."""
    lines = []
    for name, fit in ((first, result.first), (second, result.second)):
        value = "cannot be told" if fit.phi is None else f"= {fit.phi:.3f}"
        lines.append(f"{name}: phi {value}  ({fit.num_runs} runs, {fit.num_cells} cells)")
        lines += [f"  because: {fault}" for fault in fit.faults]
    percent = f"{100 * result.level:g} %"
    if result.delta_phi is not None:
        ends = "no interval"
        if result.low is not None and result.high is not None:
            ends = f"[{result.low:+.3f}, {result.high:+.3f}]"
        lines.append(
            f"delta phi = {result.delta_phi:+.3f}  {ends}  ({percent}, joint block bootstrap, "
            f"{result.shared_cells} shared cells of r = 1)"
        )
        if result.jackknife is not None:
            low, high = result.jackknife
            lines.append(
                f"            [{low:+.3f}, {high:+.3f}]  ({percent}, joint delete-a-cell jackknife)"
            )
        if result.failed:
            lines.append(
                f"warning: {result.failed} of {result.resamples} resamples failed and were left out"
            )
    if result.loss_difference is not None:
        parts = ", ".join(f"r = {r}: {v:+.4f}" for r, v in result.loss_by_recurrence.items())
        lines.append(
            f"best loss at equal {result.loss_at}: {result.loss_difference:+.4f} nats on average  "
            f"({parts})"
        )
    lines.append(verdict(result, second))
    return lines


def verdict(result: "Comparison", second: str) -> str:
    """The loop and the training, each in words."""
    loop = {
        "better": f"the loop is better in {second}: a recurrence is worth more",
        "worse": f"the loop is worse in {second}: a recurrence is worth less",
        "not distinguishable": "the loops are not distinguishable by these runs",
        "unknown": "these runs cannot tell the loops apart",
    }[result.verdict]
    if result.loss_difference is None:
        return f"verdict: {loop}"
    change = "lower" if result.loss_difference < 0 else "higher"
    return f"verdict: {loop}; the best loss of {second} at equal {result.loss_at} is {change}"


def as_json(result: "Comparison", first: str, *, second: str) -> dict[str, object]:
    """Plain JSON types; null where these runs cannot tell."""
    from looped.scaling.report_json import law_json

    recipes = {
        name: {
            "phi": fit.phi,
            "law": law_json(fit),
            "n_runs": fit.num_runs,
            "n_cells": fit.num_cells,
            "identifiable": fit.identifiable,
            "faults": list(fit.faults),
            "warnings": list(fit.warnings),
        }
        for name, fit in ((first, result.first), (second, result.second))
    }
    known = result.low is not None and result.high is not None
    return {
        "schema": 1,
        "first": first,
        "second": second,
        "recipes": recipes,
        "delta_phi": {
            "value": result.delta_phi,
            "ci": [result.low, result.high] if known else None,
            "ci_level": result.level,
            "jackknife_ci": list(result.jackknife) if result.jackknife else None,
            "resamples": result.resamples,
            "failed": result.failed,
            "shared_cells": result.shared_cells,
        },
        "loss_difference": result.loss_difference,
        "loss_at_equal": result.loss_at,
        "loss_by_recurrence": {str(r): v for r, v in result.loss_by_recurrence.items()},
        "verdict": result.verdict,
    }
