"""What `looped phi` prints: the headline, the law, the tests, the doubts."""

from collections.abc import Mapping, Sequence

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from looped.scaling.analysis import Analysis
from looped.scaling.coverage import Coverage
from looped.scaling.exclusion import Exclusion
from looped.scaling.fit import FitResult
from looped.scaling.intervals import DESCRIPTIONS
from looped.scaling.report_json import law_json
from looped.scaling.report_tables import ends, plain_table, show
from looped.scaling.seed_noise import SeedNoise
from looped.scaling.worth_report import nested_table, nested_test_rows, worth_lines

MAX_EXCLUDED = 20
"""Left-out runs printed one by one; --json lists all."""


def print_report(
    console: Console,
    analyses: Mapping[str, Analysis],
    excluded: Sequence[Exclusion],
    warnings: Sequence[str] = (),
) -> None:
    """Print every recipe, then the warnings of all runs together and what was left out."""
    for name, analysis in analyses.items():
        print_analysis(console, name, analysis)
    for warning in warnings:
        console.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)
    if excluded:
        console.print(_excluded_table(excluded))


def print_analysis(console: Console, name: str, analysis: Analysis) -> None:
    """Print one recipe."""
    fit = analysis.fit
    console.rule(Text(name), align="left")
    console.print(Text(headline(analysis), style="bold"), soft_wrap=True)
    for fault in fit.faults:
        console.print(Text(f"  because: {fault}"), soft_wrap=True)
    if analysis.worth is not None:
        for line in worth_lines(analysis.worth):
            console.print(Text(line), soft_wrap=True)
    if fit.law is not None:
        console.print(Text(_law_line(fit)), soft_wrap=True)
        console.print(Text(_quality_line(fit)), soft_wrap=True)
    if analysis.noise is not None:
        level = analysis.intervals.intervals[analysis.kind].level
        console.print(Text(_noise_line(analysis.noise, level)), soft_wrap=True)
    if fit.phi is not None and "phi" not in fit.held:
        console.print(_interval_table(analysis))
        console.print(_test_table(analysis))
        console.print(nested_table(analysis.nested))
    if analysis.by_recurrence:
        console.print(_recurrence_table(analysis))
    if analysis.laws:
        console.print(_law_table(analysis))
    if analysis.predictions:
        console.print(_prediction_table(analysis))
    if analysis.sensitivity:
        console.print(_sensitivity_table(analysis))
    for warning in analysis.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)


def coverage_table(coverage: Sequence[Coverage], *, level: float) -> Table:
    """How often each interval held the truth, and how wide it was, in each world."""
    names = list(dict.fromkeys(entry.world for entry in coverage))
    heads = [head for name in names for head in (f"{name} (%)", "width")]
    table = plain_table(f"coverage at {100 * level:g} %", *heads)
    for kind in dict.fromkeys(entry.kind for entry in coverage):
        cells = []
        for name in names:
            (entry,) = [e for e in coverage if (e.world, e.kind) == (name, kind)]
            missing = f", {entry.none} without" if entry.none else ""
            cells.append(f"{100 * entry.covered:.1f} +- {100 * entry.standard_error:.1f}{missing}")
            cells.append(show(entry.mean_width, "{:.3f}"))
        table.add_row(kind, *cells)
    return table


def headline(analysis: Analysis) -> str:
    """The one line to remember."""
    fit = analysis.fit
    runs = f"{fit.num_runs} runs"
    if "phi" in fit.held:
        return f"phi held at {fit.held['phi']:g}  ({runs})"
    if fit.phi is None:
        line = f"phi cannot be told from these {runs}"
        if fit.law is not None:
            line += f" (the best fit has {fit.law.phi:.2f}: do not believe it)"
        return line
    interval = analysis.intervals.intervals[analysis.kind]
    return (
        f"phi = {fit.phi:.3f}  {ends(interval)}  ({100 * interval.level:g} %, "
        f"{DESCRIPTIONS[interval.kind]}, {runs})"
    )


def _law_line(fit: FitResult) -> str:
    law = law_json(fit)
    values = [f"{name} {show(value)}" for name, value in law.items()]
    return "law      " + "   ".join(values)


def _quality_line(fit: FitResult) -> str:
    assert fit.optimum is not None
    estimator = fit.estimator.replace("_", " ")
    if np.isfinite(fit.delta):
        estimator += f" (delta {fit.delta:g})"
    return (
        f"fit      {estimator}   R2 {show(fit.r2)}   residual {fit.rmse:.4f} nats   "
        f"objective {fit.objective:.5e}   "
        f"{fit.optimum.num_reached} of {fit.optimum.num_starts} starts reach it"
    )


def _noise_line(noise: SeedNoise, level: float) -> str:
    line = f"seeds    {noise.noise:.4f} nats between runs that differ in the seed alone"
    line += f" (degrees of freedom: {noise.freedom})"
    if noise.shared is not None and noise.err_together(level):
        return (
            f"{line}; those of one seed, budget and width err together (p = {noise.shared.p:.2g}), "
            f"{noise.shared.own:.4f} is their own: what the law misses beside it is not tested"
        )
    if noise.p is None:
        return line
    if noise.p < 1 - level:
        return f"{line}: the law misses by more than that (p = {noise.p:.2g})"
    return f"{line}: that the law misses by more is not shown (p = {noise.p:.2g})"


def _interval_table(analysis: Analysis) -> Table:
    table = plain_table("interval of phi", "ends", "standard error")
    for interval in analysis.intervals.intervals.values():
        table.add_row(DESCRIPTIONS[interval.kind], ends(interval), show(interval.stderr))
    return table


def _test_table(analysis: Analysis) -> Table:
    table = plain_table("hypothesis", "p (independent runs)", "p (cells)", "delta AICc")
    for name, test in analysis.tests.items():
        if test is not None:
            table.add_row(
                name.replace("=", " = "),
                f"{test.p:.2g}",
                show(test.p_cells, "{:.2g}"),
                show(test.delta_aicc, "{:+.1f}"),
            )
    for row in nested_test_rows(analysis.nested):
        table.add_row(*row)
    return table


def _recurrence_table(analysis: Analysis) -> Table:
    table = plain_table(
        "r", "runs", "bias (nats)", "residual (nats)", "worth (blocks)", "phi alone"
    )
    gains = analysis.worth.gains if analysis.worth else {}
    for r, group in analysis.by_recurrence.items():
        gain = gains.get(int(r))
        table.add_row(
            r,
            str(group.num_runs),
            f"{group.bias:+.4f}",
            f"{group.rmse:.4f}",
            show(gain.value if gain else None, "{:.2f}"),
            show(gain.exponent if gain else None, "{:.3f}"),
        )
    return table


def _law_table(analysis: Analysis) -> Table:
    table = plain_table("law of r alone", "E", "A", "alpha", "B", "beta", "residual (nats)")
    for r, fit in analysis.laws.items():
        numbers = [show(value) for value in law_json(fit).values()]
        table.add_row(str(r), *numbers, show(fit.rmse, "{:.4f}"))
    return table


def _prediction_table(analysis: Analysis) -> Table:
    table = plain_table("predicted without seeing", "runs", "bias (nats)", "error (nats)")
    for row in analysis.predictions:
        table.add_row(row.left_out, str(row.num_runs), f"{row.bias:+.4f}", f"{row.rmse:.4f}")
    return table


def _sensitivity_table(analysis: Analysis) -> Table:
    table = plain_table("phi if instead", "runs", "phi")
    for row in analysis.sensitivity:
        value = "cannot tell" if row.phi is None else f"{row.phi:.3f}"
        table.add_row(row.change, str(row.num_runs), value)
    return table


def _excluded_table(excluded: Sequence[Exclusion]) -> Table:
    table = Table(title=f"left out: {len(excluded)}", title_justify="left", box=None)
    table.add_column("run", overflow="fold")
    table.add_column("why", overflow="fold")
    for left in excluded[:MAX_EXCLUDED]:
        table.add_row(Text(left.run), Text(left.why))
    if len(excluded) > MAX_EXCLUDED:
        table.add_row("...", f"{len(excluded) - MAX_EXCLUDED} more: --json lists all")
    return table
