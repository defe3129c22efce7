"""How far `looped prepare` is: documents per second, MB per second, time left."""

import sys
from collections.abc import Iterable, Iterator
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from looped.datamodules.split import SplitDocument


class _Rate(ProgressColumn):
    """Documents per second and MB per second since the task began."""

    def render(self, task: Task) -> Text:
        elapsed_s = task.elapsed or 0.0
        if elapsed_s == 0.0:
            return Text("")
        documents_per_s = task.fields["documents"] / elapsed_s
        megabytes_per_s = task.completed / elapsed_s / 1e6
        return Text(f"{documents_per_s:,.0f} documents/s  {megabytes_per_s:.1f} MB/s")


class PrepareProgress:
    """A progress display on a terminal; does nothing at all when it is not wanted or there is none.

    Args:
        wanted: false turns every method into a pass-through.
        total_bytes: size of the source; null when unknown, then no time left is shown.
        console: where to draw; null means stderr.
    """

    def __init__(
        self, *, wanted: bool, total_bytes: int | None, console: Console | None = None
    ) -> None:
        if console is None:
            console = Console(stderr=True)
            wanted = wanted and sys.stderr.isatty()
        self._total_bytes = total_bytes
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            _Rate(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not wanted,
            transient=True,
        )

    def __enter__(self) -> "PrepareProgress":
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def follow(
        self, documents: Iterable[SplitDocument], description: str
    ) -> Iterator[SplitDocument]:
        """Pass the documents on and show them going by."""
        task = self._progress.add_task(description, total=self._total_bytes, documents=0)
        for count, document in enumerate(documents, start=1):
            yield document
            self._progress.update(task, advance=document.bytes, documents=count)
