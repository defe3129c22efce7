"""What a person sees of a running sweep: a bar per run and one for the whole, or plain lines."""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from looped.sweeps.plan import PlannedRun
from looped.sweeps.status import record_of


class SweepDisplay:
    """An observer of `run_sweep` that draws on a console; a context manager.

    On a terminal the bars move; elsewhere (a log file, CI) each ended run is one line.

    Args:
        console: where to draw.
        total: number of runs of the sweep.
    """

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._total = total
        self._done = 0
        self._whole = self._progress.add_task("runs", total=total, note="")
        self._bars: dict[str, TaskID] = {}
        self._begun: dict[str, float] = {}

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

    def skipped(self, runs: list[PlannedRun]) -> None:
        """Count the runs that were finished before."""
        if runs:
            self._console.print(f"{len(runs)} of {self._total} runs were finished before")
        self._done += len(runs)
        self._progress.update(self._whole, completed=self._done)

    def started(self, run: PlannedRun) -> None:
        """Show a bar for the run."""
        self._bars[run.name] = self._progress.add_task(run.name, total=None, note="starting")
        self._begun[run.name] = time.monotonic()

    def tick(self, running: list[PlannedRun]) -> None:
        """Move the bars to where the records say the runs are."""
        for run in running:
            record = record_of(run)
            if record is not None and record.status == "running":
                self._progress.update(
                    self._bars[run.name],
                    completed=record.progress["step"],
                    total=record.progress["planned_steps"],
                    note=f"{record.flops['train']:.2g} FLOPs",
                )

    def ended(self, run: PlannedRun, error: str | None) -> None:
        """Replace the bar by one line."""
        self._progress.remove_task(self._bars.pop(run.name))
        self._done += 1
        self._progress.update(self._whole, completed=self._done)
        seconds = time.monotonic() - self._begun.pop(run.name)
        record = record_of(run)
        if error is not None:
            result = f"failed: {error}"
        elif record is None or not record.validation or record.validation[-1].loss is None:
            result = "diverged"
        else:
            result = f"loss {record.validation[-1].loss:.4f}"
        line = f"[{self._done:>3}/{self._total}] {run.name:<32} {result}  {seconds:.0f} s"
        self._console.print(line, markup=False, highlight=False)
