"""`looped sweep run`: train what is not complete, resume what was stopped, skip what is done."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from looped.commands.output import check_folder
from looped.errors import UserError

if TYPE_CHECKING:
    from looped.sweeps.launch import Left
    from looped.sweeps.plan import PlannedRun
    from looped.sweeps.together import Together
    from looped.sweeps.workers import Workers

FAILED_STATUS = 1
INTERRUPTED_STATUS = 130


def run(arguments: argparse.Namespace) -> int:
    """Run the grids; exit status 1 when a run failed, 130 when the user stopped it."""
    from looped.sweeps.check import refuse_mistakes
    from looped.sweeps.data import data_of
    from looped.sweeps.devices import devices_for
    from looped.sweeps.launch import what_is_left
    from looped.sweeps.together import read_together
    from looped.sweeps.workers import Workers

    if arguments.slurm and arguments.launcher != "slurm":
        raise UserError("--slurm goes with --launcher slurm")
    together = read_together(arguments.grids)
    check_folder(together.out, "out")
    together.check_unchanged()
    data_of(together.base, runs=together.runs)
    left = what_is_left(together.runs, retry=arguments.retry)
    here = arguments.launcher == "local"
    executor = None
    if arguments.launcher == "slurm":
        from looped.sweeps.array import array_executor

        executor = array_executor(
            together.base,
            out=together.out,
            jobs=arguments.jobs,
            options=parse_options(arguments.slurm),
        )
    jobs = min(arguments.jobs, len(left.waiting)) if here else 1
    with Workers(jobs, devices=devices_for(together.base) if here else ()) as workers:
        refuse_mistakes(left.waiting, workers=workers, elsewhere=not here)
        if here:
            together.register()
            return _train_here(together, left, workers=workers)
    return _hand_over(together, left, executor=executor)


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


def _train_here(together: "Together", left: "Left", *, workers: "Workers") -> int:
    from rich.console import Console

    from looped.sweeps.display import SweepDisplay
    from looped.sweeps.launch import run_sweep

    with SweepDisplay(Console(), together.runs) as display:
        outcome = run_sweep(left, workers=workers, observer=display)
    _name_failures(outcome.failed)
    if outcome.interrupted:
        grids = " ".join(map(str, together.grids))
        print(f"looped sweep: stopped; go on with looped sweep run {grids}", file=sys.stderr)
        return INTERRUPTED_STATUS
    return FAILED_STATUS if outcome.failed else 0


def _hand_over(together: "Together", left: "Left", *, executor: Any) -> int:
    """Leave the runs that nobody is training to SLURM, or without an executor to whoever reads.

    The grids are entered into their directory once they are submitted: a refusal leaves no trace.
    """
    from looped.sweeps.failures import clear_failure
    from looped.sweeps.locks import is_held

    waiting = [run for run in left.waiting if not is_held(run.directory)]
    notes = [] if executor is None else _submit(executor, waiting, out=together.out)
    together.register()
    for run in waiting:
        clear_failure(run.directory)
    if executor is None:
        _print_commands(waiting)
    else:
        notes += [
            f"{len(together.runs) - len(waiting)} of {len(together.runs)} runs need nothing now",
            f"see looped sweep status {together.out}",
        ]
        print("\n".join(notes))
    _name_failures(left.failed)
    return FAILED_STATUS if left.failed else 0


def _submit(executor: Any, waiting: "list[PlannedRun]", *, out: Path) -> list[str]:
    """Submit these runs, if there are any, and say so."""
    from looped.quantities import counted
    from looped.sweeps.array import earlier_arrays, submit_array

    if not waiting:
        return []
    earlier = earlier_arrays(out)
    jobs = submit_array(executor, waiting)
    notes = [f"submitted {counted(len(jobs), 'run')} as array {jobs[0].job_id.split('_')[0]}"]
    if earlier:
        notes.append(
            f"{counted(earlier, 'array')} submitted before: tasks that find their run taken or "
            "finished end at once"
        )
    return notes


def _name_failures(failed: Mapping[str, str]) -> None:
    for name, error in failed.items():
        print(f"looped sweep: {name} failed: {error}", file=sys.stderr)


def _print_commands(runs: "list[PlannedRun]") -> None:
    """One line per run, to be run in this directory."""
    import shlex

    from looped.sweeps.status import can_resume

    for run in runs:
        arguments = run.fit_arguments
        if can_resume(run.directory):
            arguments.append("--ckpt_path=last")
        print(shlex.join(["looped", "fit", *arguments]))
