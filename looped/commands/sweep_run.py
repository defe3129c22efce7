"""`looped sweep run`: train what is not complete, resume what was stopped, skip what is done."""

import argparse
import sys

FAILED_STATUS = 1
INTERRUPTED_STATUS = 130


def run(arguments: argparse.Namespace) -> int:
    """Run the grid; exit status 1 when a run failed, 130 when the user stopped it."""
    from rich.console import Console

    from looped.errors import UserError
    from looped.sweeps.display import SweepDisplay
    from looped.sweeps.grid import read_grid
    from looped.sweeps.launch import run_sweep
    from looped.sweeps.plan import plan_sweep
    from looped.sweeps.sweep_file import register

    if arguments.jobs < 1:
        raise UserError(f"--jobs {arguments.jobs} is below 1: choose 1 or more")
    grid = read_grid(arguments.grid)
    runs = plan_sweep(grid)
    register(arguments.grid, runs, out=grid.out)
    with SweepDisplay(Console(), runs) as display:
        outcome = run_sweep(
            runs, out=grid.out, jobs=arguments.jobs, observer=display, retry=arguments.retry
        )
    for name, error in outcome.failed.items():
        print(f"looped sweep: {name} failed: {error}", file=sys.stderr)
    if outcome.interrupted:
        print(
            f"looped sweep: stopped; go on with looped sweep run {arguments.grid}", file=sys.stderr
        )
        return INTERRUPTED_STATUS
    return FAILED_STATUS if outcome.failed else 0
