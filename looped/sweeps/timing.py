"""How long runs will take on this machine, from ten seconds of training.

The run with the fewest FLOPs per step and the one with the most are trained for some seconds each,
as they would be: same worker, same threads, same data, as many at a time. Between them an optimizer
step takes

    seconds = overhead + FLOPs / speed

and a validation row costs a third of a training row.
"""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from looped.errors import UserError
from looped.record import Record
from looped.sweeps.data import data_of
from looped.sweeps.devices import devices_for
from looped.sweeps.plan import PlannedRun
from looped.sweeps.status import record_of
from looped.sweeps.workers import Workers

SECONDS_PER_RUN = 5
PATIENCE_S = 90.0
POLL_S = 0.2
VALIDATION_SHARE = 1 / 3


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Seconds per optimizer step on this machine.

    Attributes:
        overhead_s: of a step, whatever its size.
        s_per_flop: on top, per training FLOP of the step.
    """

    overhead_s: float
    s_per_flop: float

    def step_s(self, run: PlannedRun) -> float:
        """Seconds that an optimizer step of a run takes."""
        return self.overhead_s + self.s_per_flop * _step_flops(run)

    def run_s(self, run: PlannedRun, *, val_rows: int | None) -> float:
        """Seconds that training a run and measuring its loss once take.

        Args:
            run: planned.
            val_rows: rows of the validation data; null leaves the measurement out.
        """
        rows = VALIDATION_SHARE * (val_rows or 0) / run.base.rows_per_step
        return self.step_s(run) * (run.plan.steps + rows)


def estimated_seconds(runs: Sequence[PlannedRun], *, jobs: int) -> list[float]:
    """Training time of each run on this machine, with so many at a time.

    Raises:
        UserError: the runs cannot be tried here: no data, no such device, too slow.
    """
    timing = measure(runs, jobs=jobs)
    data = data_of(runs[0].base, runs=runs)
    val_rows = None if data is None else data.val.rows
    return [timing.run_s(run, val_rows=val_rows) for run in runs]


def measure(runs: Sequence[PlannedRun], *, jobs: int) -> Timing:
    """Train the smallest and the largest run for some seconds each.

    Args:
        runs: of a sweep; nothing is written into its directory.
        jobs: runs at a time.

    Raises:
        UserError: as `estimated_seconds`.
    """
    ordered = sorted(runs, key=_step_flops)
    ends = ordered[:1] + [run for run in ordered[-1:] if _step_flops(run) > _step_flops(ordered[0])]
    with tempfile.TemporaryDirectory(prefix="looped-timing-") as folder:
        tried = [replace(run, directory=Path(folder) / run.name) for run in ends]
        seconds = _train_briefly(tried, jobs=jobs)
    return through([_step_flops(run) for run in ends], seconds)


def through(flops: Sequence[float], seconds: Sequence[float]) -> Timing:
    """The line through one or two measured steps; neither part of it is negative."""
    slope = seconds[-1] / flops[-1]
    if len(flops) > 1:
        slope = min(slope, max(0.0, (seconds[1] - seconds[0]) / (flops[1] - flops[0])))
    return Timing(overhead_s=max(0.0, seconds[-1] - slope * flops[-1]), s_per_flop=slope)


def _step_flops(run: PlannedRun) -> float:
    return float(run.plan.flops_per_token * run.plan.tokens_per_step)


def _train_briefly(runs: list[PlannedRun], *, jobs: int) -> list[float]:
    """Seconds per step of each run."""
    limits = [f"--trainer.max_time=00:00:00:{SECONDS_PER_RUN:02}"]
    waiting = list(runs)
    deadline = time.monotonic() + PATIENCE_S
    errors: dict[str, str | None] = {}
    first: dict[str, Record] = {}
    with Workers(jobs, devices=devices_for(runs[0].base)) as workers:
        while waiting or workers.running:
            while waiting and workers.has_room:
                workers.start(waiting.pop(0), extra=limits)
            for run, reply in workers.replies(POLL_S):
                errors[run.name] = reply.error
            for run in workers.running:
                record = record_of(run.directory)
                if record is not None and record.progress["step"]:
                    first.setdefault(run.name, record)
            if time.monotonic() > deadline:
                workers.kill()
                raise UserError(f"a few steps took more than {PATIENCE_S:.0f} s here")
    seconds = []
    for run in runs:
        record = record_of(run.directory)
        if record is None or not record.progress["step"]:
            raise UserError(errors.get(run.name) or "not one step was made")
        seconds.append(step_s_between(first.get(run.name), record))
    return seconds


def step_s_between(first: Record | None, last: Record) -> float:
    """Seconds per step between two records of a run; the first steps are slow and left out.

    Args:
        first: one with at least a step; null when there was none before the last.
        last: the newest.
    """
    steps, seconds = last.progress["step"], last.wall_s
    if first is not None and first.progress["step"] < steps:
        steps -= first.progress["step"]
        seconds -= first.wall_s
    return float(seconds / steps)
