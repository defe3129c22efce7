"""What a person sees of a running sweep: a bar per running job and one for the whole grid.

On a terminal the bars move; elsewhere (a log file, CI) each ended run is one line.
"""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from looped.quantities import duration, short
from looped.record import Record
from looped.sweeps.launch import Left
from looped.sweeps.messages import Reply
from looped.sweeps.plan import PlannedRun
from looped.sweeps.progress import progress_of
from looped.sweeps.status import record_of


class SweepDisplay:
    """An observer of `run_sweep` that draws on a console; a context manager.

    Args:
        console: where to draw.
        runs: all runs of the sweep.
    """

    def __init__(self, console: Console, runs: list[PlannedRun]) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.fields[note]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._total = len(runs)
        self._name_width = max((len(run.name) for run in runs), default=0)
        self._ended = 0
        self._flops = dict.fromkeys((run.name for run in runs), 0.0)
        self._whole = self._progress.add_task(
            "grid", total=float(sum(run.plan.train_flops for run in runs)), note=""
        )
        self._bars: dict[str, TaskID] = {}
        self._first: dict[str, Record] = {}
        self._begun: dict[str, float] = {}
        self._started = (time.monotonic(), 0.0)  # clock and FLOPs, to tell the pace from

    def __enter__(self) -> "SweepDisplay":
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def skipped(self, left: Left) -> None:
        """Count the runs that were finished or failed before."""
        finished, failed = len(left.finished), len(left.failed)
        if finished:
            self._say(f"{finished} of {self._total} runs were finished before")
        if failed:
            self._say(f"{failed} of {self._total} runs failed before (--retry tries again)")
        self._ended += finished + failed
        for run in left.finished:
            self._flops[run.name] = float(run.plan.train_flops)
        self._started = (time.monotonic(), sum(self._flops.values()))
        self._update_whole()

    def started(self, run: PlannedRun) -> None:
        """Show a bar for the run."""
        self._bars[run.name] = self._progress.add_task(
            run.name, total=float(run.plan.tokens), note="starting"
        )
        self._begun[run.name] = time.monotonic()

    def tick(self, running: list[PlannedRun]) -> None:
        """Move the bars to where the records say the runs are."""
        if self._progress.disable:
            return
        for run in running:
            record = record_of(run.directory)
            if record is None or record.status != "running":
                continue
            first = self._first.setdefault(run.name, record)
            now = progress_of(record, run.directory, first=first)
            note = "-" if now.loss is None else f"loss {now.loss:.3f}"
            if now.tokens_per_s is not None and now.left_s is not None:
                note += f"  {short(now.tokens_per_s)} tokens/s  {duration(now.left_s)} left"
            self._progress.update(self._bars[run.name], completed=now.tokens, note=note)
            self._flops[run.name] = float(now.tokens * run.plan.flops_per_token)
        self._update_whole()

    def ended(self, run: PlannedRun, reply: Reply) -> None:
        """Replace the bar by one line; a run that others have simply loses its bar."""
        self._progress.remove_task(self._bars.pop(run.name))
        seconds = time.monotonic() - self._begun.pop(run.name)
        self._first.pop(run.name, None)
        if reply.outcome == "taken":
            return
        if reply.outcome != "stopped":
            self._count(run)
        self._line(run, f"{_result(run, reply)}  {duration(seconds)}")

    def ended_elsewhere(self, run: PlannedRun) -> None:
        """Count a run that another launcher ended."""
        self._count(run)
        self._line(run, "ended in another launcher")

    def stopping(self) -> None:
        """Say what is happening."""
        self._say("stopping: each run writes a checkpoint; Ctrl-C again stops at once")

    def _count(self, run: PlannedRun) -> None:
        self._ended += 1
        self._flops[run.name] = float(run.plan.train_flops)
        self._update_whole()

    def _update_whole(self) -> None:
        done = sum(self._flops.values())
        clock, before = self._started
        note = f"{self._ended} of {self._total} runs"
        if done > before and self._ended < self._total:
            left = sum(task.total or 0.0 for task in self._progress.tasks[:1]) - done
            pace = (done - before) / (time.monotonic() - clock)
            note += f"  {duration(left / pace)} left"
        self._progress.update(self._whole, completed=done, note=note)

    def _line(self, run: PlannedRun, text: str) -> None:
        self._say(f"[{self._ended:>3}/{self._total}] {run.name:<{self._name_width}}  {text}")

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def _result(run: PlannedRun, reply: Reply) -> str:
    if reply.outcome == "failed":
        return f"failed: {reply.error}"
    if reply.outcome == "stopped":
        return "stopped"
    record = record_of(run.directory)
    if record is None or not record.validation or record.validation[-1].loss is None:
        return "diverged"
    return f"loss {record.validation[-1].loss:.4f}"
