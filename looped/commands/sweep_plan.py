"""`looped sweep plan`: the table of runs, what they cost and what they would tell about phi."""

import argparse

from looped.commands.phi import STDOUT, write_json


def run(arguments: argparse.Namespace) -> int:
    """Plan, print, write."""
    from looped.scaling.prior import PUBLISHED, read_prior
    from looped.sweeps.data_rows import train_rows_of
    from looped.sweeps.doubts import doubts
    from looped.sweeps.grid import read_grid
    from looped.sweeps.plan import plan_sweep
    from looped.sweeps.points import expected_errors
    from looped.sweeps.report import expected_lines, plan_json, run_json
    from looped.sweeps.status import status_of
    from looped.sweeps.sweep_file import check_unchanged
    from looped.sweeps.tables import plan_table

    grid = read_grid(arguments.grid)
    runs = plan_sweep(grid)
    check_unchanged(arguments.grid, runs, out=grid.out)
    prior = PUBLISHED
    if arguments.law is not None:
        prior = read_prior(arguments.law, recipe=next(iter(grid.recipes)))
    rows = train_rows_of(runs[0].base)
    statuses = [status_of(run.directory) for run in runs]
    expected = expected_errors(runs, prior)
    lines = plan_table(runs, statuses=statuses, seconds=[None] * len(runs), train_rows=rows)
    total = sum(run.plan.train_flops for run in runs)
    lines += [f"{len(runs)} runs, {total:.3g} FLOPs"]
    lines += expected_lines(expected, prior.source)
    lines += [f"warning: {line}" for line in doubts(runs, prior, train_rows=rows)]
    if arguments.json != STDOUT:
        print("\n".join(lines))
    if arguments.json:
        entries = [run_json(run, status) for run, status in zip(runs, statuses, strict=True)]
        write_json(arguments.json, plan_json(entries, expected))
    return 0
