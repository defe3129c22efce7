"""`looped sweep plan`: the table of runs, what they cost and what they would tell about phi."""

import argparse
from typing import TYPE_CHECKING

from looped.commands.output import STDOUT, check_folder, write_json
from looped.commands.phi import parse_fix
from looped.errors import UserError

if TYPE_CHECKING:
    from looped.sweeps.plan import PlannedRun


def run(arguments: argparse.Namespace) -> int:
    """Plan, print, write."""
    from looped.quantities import counted
    from looped.scaling.prior import PUBLISHED, read_prior
    from looped.sweeps.data import data_of
    from looped.sweeps.doubts import doubts
    from looped.sweeps.points import expected_of
    from looped.sweeps.report import expected_lines, plan_json, run_json
    from looped.sweeps.status import is_finished, status_of
    from looped.sweeps.tables import plan_table
    from looped.sweeps.together import read_together

    fix = parse_fix(arguments.fix)
    together = read_together(arguments.grids)
    runs = together.runs
    check_folder(together.out, "out")
    together.check_unchanged()
    prior = PUBLISHED
    if arguments.law is not None:
        prior = read_prior(arguments.law, recipe=together.first_recipe)
    data = data_of(together.base, runs=runs)
    rows = None if data is None else data.train.rows
    statuses = [status_of(run.directory) for run in runs]
    beside = together.runs_beside()
    expected = expected_of([*runs, *beside], prior, fix=fix)
    left = [run for run in runs if not is_finished(run.directory)]
    times: dict[str, float] = {}
    note = ""
    if arguments.timing and rows and left:
        times, note = _seconds(left, arguments.jobs)
    seconds = [times.get(run.name) for run in runs]
    lines = plan_table(runs, statuses=statuses, seconds=seconds, train_rows=rows)
    total = sum(run.plan.train_flops for run in runs)
    lines.append(f"{counted(len(runs), 'run')}, {total:.3g} FLOPs{note}")
    if beside:
        lines.append(f"with the {counted(len(beside), 'run')} of other grids in {together.out}:")
    lines += expected_lines(expected, prior.source)
    if data is None and together.base.data_dir:
        lines.append(
            f"warning: no prepared data in {together.base.data_dir}: whether it suits these runs, "
            "how often they see it and how long they take is not known"
        )
    lines += [f"warning: {line}" for line in doubts(runs, prior, train_rows=rows, beside=beside)]
    if arguments.json != STDOUT:
        print("\n".join(lines))
    if arguments.json:
        entries = [run_json(run, status) for run, status in zip(runs, statuses, strict=True)]
        for entry, time_s in zip(entries, seconds, strict=True):
            entry["estimated_s"] = time_s
        write_json(arguments.json, plan_json(entries, expected))
    return 0


def _seconds(runs: "list[PlannedRun]", jobs: int) -> tuple[dict[str, float], str]:
    """Estimated seconds of each run by name, and what to say of what is left of them."""
    from looped.quantities import duration
    from looped.sweeps.status_table import spent_flops
    from looped.sweeps.timing import estimated_seconds

    try:
        seconds = estimated_seconds(runs, jobs=jobs)
    except UserError as error:
        return {}, f"; the time is not known: {error}"
    left_s = sum(
        time_s * max(0.0, 1 - spent_flops(run) / run.plan.train_flops)
        for run, time_s in zip(runs, seconds, strict=True)
    )
    at_a_time = f"{jobs} at a time" if jobs > 1 else "one after another"
    times = {run.name: time_s for run, time_s in zip(runs, seconds, strict=True)}
    return times, f", about {duration(left_s / jobs)} left on this machine, {at_a_time}"
