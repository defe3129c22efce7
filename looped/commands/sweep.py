"""A grid of runs from one YAML.

    looped sweep run configs/sweeps/demo.yaml --jobs 2

trains what is not complete, resumes what was stopped and skips what is complete. The file is
explained in looped/sweeps/grid.py; everything it does not name is in its `base` configuration.
"""

import argparse
import sys
from pathlib import Path

from looped.errors import UserError

FAILED_STATUS = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `looped sweep`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    run_parser = actions.add_parser("run", help="train the runs of a grid")
    run_parser.add_argument("grid", type=Path, help="the grid YAML")
    run_parser.add_argument(
        "--jobs", type=int, default=1, help="runs at a time; the cores are divided between them"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the grid; exit status 1 when a run failed."""
    from rich.console import Console

    from looped.sweeps.display import SweepDisplay
    from looped.sweeps.grid import read_grid
    from looped.sweeps.launch import run_sweep
    from looped.sweeps.plan import plan_sweep

    if arguments.jobs < 1:
        raise UserError(f"--jobs {arguments.jobs} is below 1: choose 1 or more")
    grid = read_grid(arguments.grid)
    runs = plan_sweep(grid)
    with SweepDisplay(Console(), len(runs)) as display:
        outcome = run_sweep(runs, out=grid.out, jobs=arguments.jobs, observer=display)
    for name, error in outcome.failed.items():
        print(f"looped sweep: {name} failed: {error}", file=sys.stderr)
    return FAILED_STATUS if outcome.failed else 0
