"""`looped sweep run`: train what is not complete, resume what was stopped, skip what is done."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from looped.errors import UserError

if TYPE_CHECKING:
    from looped.sweeps.grid import Grid
    from looped.sweeps.plan import PlannedRun

FAILED_STATUS = 1
INTERRUPTED_STATUS = 130


def run(arguments: argparse.Namespace) -> int:
    """Run the grid; exit status 1 when a run failed, 130 when the user stopped it."""
    from looped.sweeps.grid import read_grid
    from looped.sweeps.plan import plan_sweep
    from looped.sweeps.sweep_file import register

    if arguments.jobs < 1:
        raise UserError(f"--jobs {arguments.jobs} is below 1: choose 1 or more")
    if arguments.slurm and arguments.launcher != "slurm":
        raise UserError("--slurm goes with --launcher slurm")
    options = parse_options(arguments.slurm)
    grid = read_grid(arguments.grid)
    runs = plan_sweep(grid)
    register(arguments.grid, runs, out=grid.out)
    if arguments.launcher == "local":
        return _train_here(arguments, grid, runs)
    waiting = _unfinished(runs, retry=arguments.retry)
    if arguments.launcher == "commands":
        _print_commands(waiting)
    elif waiting:
        from looped.sweeps.array import submit_array

        jobs = submit_array(waiting, out=grid.out, jobs=arguments.jobs, options=options)
        print(f"submitted {len(jobs)} runs as array {jobs[0].job_id.split('_')[0]}")
    if arguments.launcher == "slurm":
        print(f"{len(runs) - len(waiting)} of {len(runs)} runs need nothing now")
        print(f"see looped sweep status {grid.out}")
    return 0


def parse_options(texts: list[str]) -> dict[str, Any]:
    """`["timeout_min=60"]` -> {"timeout_min": 60}; values are YAML."""
    import yaml

    options = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise UserError(f"--slurm {text}: write it as NAME=VALUE, such as timeout_min=60")
        try:
            options[name] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise UserError(f"--slurm {text}: {value!r} is not a value") from error
    return options


def _train_here(arguments: argparse.Namespace, grid: "Grid", runs: "list[PlannedRun]") -> int:
    from rich.console import Console

    from looped.sweeps.display import SweepDisplay
    from looped.sweeps.launch import run_sweep

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


def _unfinished(runs: "list[PlannedRun]", *, retry: bool) -> "list[PlannedRun]":
    """Runs that are neither finished nor being trained, nor failed unless they are tried again."""
    from looped.sweeps.failures import clear_failure
    from looped.sweeps.status import status_of

    if retry:
        for run in runs:
            clear_failure(run.directory)
    return [run for run in runs if status_of(run.directory) in ("planned", "stopped")]


def _print_commands(runs: "list[PlannedRun]") -> None:
    """One line per run, to be run in this directory."""
    import shlex

    from looped.sweeps.status import can_resume

    for run in runs:
        arguments = run.fit_arguments
        if can_resume(run.directory):
            arguments.append("--ckpt_path=last")
        print(shlex.join(["looped", "fit", *arguments]))
