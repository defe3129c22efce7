"""A pool of worker processes, each with one run at a time."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from types import TracebackType

from looped.sweeps.devices import shares
from looped.sweeps.messages import Reply, job_of
from looped.sweeps.plan import PlannedRun

Process = subprocess.Popen[str]


def threads_of(count: int) -> dict[str, str]:
    """Environment that divides the cores between so many processes.

    Threads that spin while they wait for each other make tiny models a hundred times slower as soon
    as somebody else uses the cores; passive ones cost microseconds when nobody does.
    """
    threads = str(max(1, len(os.sched_getaffinity(0)) // max(count, 1)))
    return {
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "OMP_WAIT_POLICY": "PASSIVE",
    }


class Workers:
    """Up to `count` worker processes, started when they are needed; a context manager.

    Args:
        count: most processes at a time; the cores are divided between them, unless the
            environment names a number of threads.
        devices: names of CUDA devices to divide likewise; none leaves them as they are.
    """

    def __init__(self, count: int, *, devices: Sequence[str] = ()) -> None:
        self._count = count
        common = threads_of(count) | os.environ
        self._environments = [common | share for share in shares(devices, count)]
        self._places: dict[Process, int] = {}
        self._idle: list[Process] = []
        self._busy: dict[Process, PlannedRun] = {}
        self._selector = selectors.DefaultSelector()
        self._stopping = False

    def __enter__(self) -> "Workers":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End all workers, in the middle of a run if need be."""
        processes = (*self._idle, *self._busy)
        for process in processes:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        for process in processes:
            process.wait()
        self._selector.close()

    @property
    def running(self) -> list[PlannedRun]:
        """The runs that are being trained."""
        return list(self._busy.values())

    @property
    def has_room(self) -> bool:
        """Whether another run can be started."""
        return len(self._busy) < self._count

    def start(
        self, run: PlannedRun, *, extra: Sequence[str] = (), check_only: bool = False
    ) -> None:
        """Give a run to an idle worker, or to a new one.

        Args:
            run: to train.
            extra: further arguments of `looped fit`.
            check_only: only look whether it could start.
        """
        process = self._idle.pop() if self._idle else self._new_process()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died: its reply will say so
            job = job_of(run, extra=extra, check_only=check_only)
            process.stdin.write(json.dumps(asdict(job)) + "\n")
            process.stdin.flush()
        self._busy[process] = run
        self._selector.register(process.stdout, selectors.EVENT_READ, process)  # type: ignore[arg-type]  # a pipe was asked for

    def replies(self, timeout_s: float) -> list[tuple[PlannedRun, Reply]]:
        """The runs that ended, after waiting for one for at most this long."""
        ended = []
        for key, _ in self._selector.select(timeout=timeout_s):
            self._selector.unregister(key.fileobj)
            process: Process = key.data
            run = self._busy.pop(process)
            ended.append((run, self._reply(process)))
        return ended

    def stop(self) -> None:
        """Have every run write a checkpoint and end."""
        self._stopping = True
        for process in self._busy:
            process.terminate()

    def kill(self) -> None:
        """End every run now."""
        self._stopping = True
        for process in self._busy:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def _reply(self, process: Process) -> Reply:
        assert process.stdout is not None
        line = process.stdout.readline()
        if line:
            self._idle.append(process)
            return Reply(**json.loads(line))
        status = process.wait()
        del self._places[process]
        if self._stopping:
            return Reply(outcome="stopped")
        return Reply(outcome="failed", error=f"its worker ended with exit status {status}")

    def _new_process(self) -> Process:
        place = next(p for p in range(self._count) if p not in self._places.values())
        process = subprocess.Popen(
            [sys.executable, "-m", "looped.sweeps.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._environments[place],
            text=True,
            start_new_session=True,  # Ctrl-C reaches the launcher alone, which passes it on
        )
        self._places[process] = place
        return process
