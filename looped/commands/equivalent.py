"""What a looped size is worth: the plain model of equal loss, the plain model of equal cost.

  looped equivalent --recurrences 4 --size 410M --phi 0.46
  looped equivalent --recurrences 4 --size 410M --budget 1e20 runs/
  looped equivalent --recurrences 4 --budget 1e20 --published

With --budget: the best size, tokens and loss at that recurrence count, by the fitted law.
"""

import argparse
import re
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from looped.commands.output import STDOUT, write_json
from looped.commands.phi import (
    PUBLISHED,
    add_fit_arguments,
    add_source_arguments,
    check_options,
    chosen_recipes,
    parse_fix,
    published_recipe,
    read_pool,
)
from looped.errors import UserError

if TYPE_CHECKING:
    from looped.scaling.equivalence import Allocation, Equivalent, Layout
    from looped.scaling.fit import FitResult

UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `looped equivalent`."""
    add_source_arguments(parser)
    parser.add_argument(
        "--recurrences", type=int, required=True, help="r, how often the recurrent block runs"
    )
    parser.add_argument(
        "--size", metavar="N", help="N_once + N_rec of the looped model, such as 410M"
    )
    parser.add_argument(
        "--budget", type=float, metavar="FLOPS", help="training FLOPs to allocate, such as 1e20"
    )
    parser.add_argument("--phi", type=float, help="value of a recurrence, instead of fitting runs")
    parser.add_argument(
        "--published",
        nargs="?",
        type=published_recipe,
        const=True,
        metavar="RECIPE",
        help=f"the published runs instead of SOURCE, of recipe {' or '.join(PUBLISHED)} "
        f"(default: {PUBLISHED[0]})",
    )
    parser.add_argument("--recipe", help="the recipe to fit (default: the only one)")
    parser.add_argument(
        "--layout",
        default="2-16-2",
        metavar="P-L-C",
        help="effective layers of prelude, loop and coda (default: 2-16-2)",
    )
    parser.add_argument(
        "--truncation-depth", type=int, metavar="K", help="gradients through the last K recurrences"
    )
    parser.add_argument("--vocab-size", type=int, default=32_001, help="(default: 32001)")
    parser.add_argument("--seq-len", type=int, default=2_048, help="(default: 2048)")
    add_fit_arguments(parser)
    parser.add_argument(
        "--json", metavar="FILE", help=f"write the result as JSON; {STDOUT} = standard output"
    )


def run(arguments: argparse.Namespace) -> int:
    """Value a size, allocate a budget, or both."""
    from rich.console import Console

    from looped.scaling.equivalence import allocate, equivalent

    check_options(arguments)
    if arguments.size is None and arguments.budget is None:
        raise UserError("nothing to do: give --size, --budget or both")
    size = None if arguments.size is None else parse_size(arguments.size)
    layout = _layout(arguments)
    fit, phi, ends = _phi(arguments)
    values = [phi] if ends is None else [phi, *ends]
    sizes = [] if size is None else [equivalent(layout, size, phi=value) for value in values]
    best: list[Allocation] = []
    if arguments.budget is not None:
        if fit is None or fit.law is None:
            raise UserError("--budget needs a fitted law: name runs or --published, not --phi")
        if fit.uncarried:
            raise UserError(
                f"--budget needs {', '.join(fit.uncarried)}, which two token counts "
                "cannot tell: add runs of a third"
            )
        best = [
            allocate(fit.law, each, budget=arguments.budget) for each in (layout, layout.plain())
        ]
    console = Console(stderr=arguments.json == STDOUT, highlight=False)
    for line in _report(sizes, best, phi=phi):
        console.print(line, soft_wrap=True, markup=False)
    if arguments.json:
        content = {
            "schema": 1,
            "phi": phi,
            "phi_ci": list(ends) if ends else None,
            "equivalent": asdict(sizes[0]) if sizes else None,
            "equal_loss_ci": [each.equal_loss for each in sizes[1:]] or None,
            "allocation": asdict(best[0]) if best else None,
            "plain_allocation": asdict(best[1]) if best else None,
        }
        write_json(arguments.json, content)
    return 0


def parse_size(text: str) -> float:
    """`410M`, `1.3B`, `580e6` -> parameters."""
    match = re.fullmatch(r"([0-9.]+(?:e[0-9]+)?)([kmbgt]?)", text.strip().lower())
    try:
        size = float(match[1]) * UNITS[match[2]] if match else 0.0
    except ValueError:
        size = 0.0
    if size <= 0:
        raise UserError(f"size {text!r}: write it as 410M, 1.3B or 580e6")
    return size


def show(count: float) -> str:
    """410000000 -> 410M."""
    for unit, name in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if count >= 0.9995 * unit:
            return f"{count / unit:.3g}{name}"
    return f"{count:.3g}"


def _layout(arguments: argparse.Namespace) -> "Layout":
    from looped.scaling.equivalence import Layout

    match = re.fullmatch(r"(\d+)-(\d+)-(\d+)", arguments.layout)
    if not match:
        raise UserError(f"layout {arguments.layout!r}: write prelude-loop-coda, such as 2-16-2")
    prelude, looped, coda = map(int, match.groups())
    return Layout(
        prelude_layers=prelude,
        looped_layers=looped,
        coda_layers=coda,
        recurrences=arguments.recurrences,
        truncation_depth=arguments.truncation_depth,
        vocab_size=arguments.vocab_size,
        seq_len=arguments.seq_len,
    )


def _phi(
    arguments: argparse.Namespace,
) -> "tuple[FitResult | None, float, tuple[float, float] | None]":
    """The fit, phi and its interval; no fit when phi was given."""
    from looped.scaling.fit import FIXABLE, fit_law

    if arguments.phi is not None:
        if arguments.sources or arguments.published:
            raise UserError("--phi takes the place of a fit: leave out the runs")
        for name in ("fix", "recipe", "convention", "fingerprint", "tokenizer", "reference"):
            if getattr(arguments, name):
                raise UserError(f"--phi takes the place of a fit: leave out --{name}")
        low, high = FIXABLE["phi"]
        if not low <= arguments.phi <= high:
            raise UserError(f"--phi {arguments.phi:g} is not between {low:g} and {high:g}")
        return None, arguments.phi, None
    from looped.scaling.intervals import phi_intervals

    fix = parse_fix(arguments.fix)
    named = chosen_recipes(arguments, [arguments.recipe] if arguments.recipe else [])
    pool = read_pool(arguments)
    for warning in pool.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    names = named or pool.recipes
    if len(names) > 1:
        raise UserError(f"several recipes, {', '.join(names)}: choose one with --recipe")
    fit = fit_law(
        pool.of_recipe(names[0], match_budgets=arguments.match_budgets),
        estimator=arguments.estimator,
        delta=arguments.delta,
        fix=fix,
    )
    if fit.phi is None:
        raise UserError(f"these runs cannot tell phi ({fit.faults[0]}): give --phi instead")
    interval = phi_intervals(
        fit,
        [arguments.interval],
        level=arguments.level,
        resamples=arguments.resamples,
        seed=arguments.seed,
    ).intervals[arguments.interval]
    if interval.low is None or interval.high is None:
        return fit, fit.phi, None
    return fit, fit.phi, (interval.low, interval.high)


def _report(sizes: "list[Equivalent]", best: "list[Allocation]", *, phi: float) -> list[str]:
    lines = []
    if sizes:
        found = sizes[0]
        span = f"  [{show(sizes[1].equal_loss)}, {show(sizes[2].equal_loss)}]" if sizes[1:] else ""
        share = found.equal_loss_flops_per_token / found.flops_per_token
        lines += [
            f"looped      {show(found.n_once + found.n_rec)} parameters, r = {found.recurrences}, "
            f"width about {found.width:.0f}: N_once {show(found.n_once)}, N_rec "
            f"{show(found.n_rec)}, phi = {phi:.3f}",
            f"equal loss  {show(found.equal_loss)} plain{span}, at {100 * share:.0f} % of the "
            "looped model's training FLOPs per token",
            f"equal cost  {show(found.equal_cost)} plain",
        ]
    for allocation in best:
        kind = "plain     " if allocation.recurrences == 1 else f"r = {allocation.recurrences:<6}"
        lines.append(
            f"{kind}  best use of {allocation.budget:.3g} FLOPs: {show(allocation.n_total)} "
            f"parameters, {show(allocation.tokens)} tokens, loss {allocation.loss:.4f}"
        )
    return lines
