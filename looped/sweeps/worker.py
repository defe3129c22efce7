"""One worker process of a sweep: trains one run after another (`python -m looped.sweeps.worker`).

Importing torch and lightning takes seconds, so a process is used for many runs. The launcher
sends one JSON line per run on standard input (`Job`) and gets one back on standard output
(`Reply`). What the run itself prints goes to its log. SIGTERM ends the run at hand with a
checkpoint. When standard input closes the launcher is gone, and the worker goes too, in the middle
of a run if need be: its checkpoint is the place to take up from.
"""

import contextlib
import json
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from looped.errors import UserError
from looped.sweeps.fit_process import FitProcess
from looped.sweeps.locks import take_lock
from looped.sweeps.messages import Job, Reply
from looped.sweeps.status import can_resume, is_finished, record_of

INTERRUPTED = 3
USER_ERROR_STATUS = 2
SIGNAL_STATUS = 128  # a `looped fit` that a signal ended returns 128 + its number
POSSIBLE = Reply(outcome="possible")


def main() -> None:
    """Train what comes in until standard input closes."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    jobs: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(jobs,), daemon=True).start()
    while True:
        reply = perform(Job(**jobs.get()))
        replies.write(json.dumps(asdict(reply)) + "\n")


def _listen(jobs: queue.Queue[dict[str, Any]]) -> None:
    for line in sys.stdin:
        jobs.put(json.loads(line))
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)  # with the processes of a run of several
    os._exit(INTERRUPTED)


def perform(job: Job) -> Reply:
    """Train one run, unless it is finished or somebody else is at it."""
    directory = Path(job.directory)
    try:
        Path(job.log).parent.mkdir(parents=True, exist_ok=True)
        if job.check_only:
            return _check(job)
        lock = take_lock(directory)
    except OSError as problem:
        return Reply(outcome="failed", error=f"its lock and log cannot be written: {problem}")
    if lock is None:
        return Reply(outcome="taken")
    with lock:
        if is_finished(directory):
            return Reply(outcome="finished")
        arguments = [*job.arguments]
        if can_resume(directory):
            arguments.append("--ckpt_path=last")
        if job.own_process:
            status, error = _train_in_own_process(arguments, log=Path(job.log), lock=lock)
        else:
            from looped.training import main as train

            status, error = _call(train, arguments, log=Path(job.log))
        return judge(directory, status, error)


def judge(directory: Path, status: int, error: str | None) -> Reply:
    """What became of a run, by its record first: that is what the fitter will read."""
    if is_finished(directory):
        return Reply(outcome="trained")
    if status > SIGNAL_STATUS:
        return Reply(outcome="stopped")
    if error is None:
        record = record_of(directory)
        progress = {} if record is None else record.progress
        error = (
            f"ended at step {progress.get('step')} of {progress.get('planned_steps')}, before its "
            "horizon: take a limit out of the trainer section"
        )
    return Reply(outcome="failed", error=error)


def _train_in_own_process(
    arguments: list[str], *, log: Path, lock: IO[str]
) -> tuple[int, str | None]:
    process = FitProcess(arguments, log=log, lock=lock)
    before = signal.signal(signal.SIGTERM, lambda *_: process.stop())
    try:
        status = process.wait()
    finally:
        signal.signal(signal.SIGTERM, before)
    return status, None if status == 0 else process.last_words()


def _check(job: Job) -> Reply:
    """Whether the user has made a mistake that keeps a run from starting.

    What fails otherwise is no mistake of theirs: the run itself will show it, with its log.
    """
    from looped.training import check

    status, error = _call(check, job.arguments, log=Path(job.log))
    return Reply(outcome="failed", error=error) if status == USER_ERROR_STATUS else POSSIBLE


def _call(
    command: Callable[[Sequence[str]], int], arguments: Sequence[str], *, log: Path
) -> tuple[int, str | None]:
    """Exit status of a `fit` in this process and one line about what went wrong, if anything did.

    Args:
        command: what to call.
        arguments: of `looped fit`.
        log: file that takes what is printed.
    """
    with log.open("a", encoding="utf-8") as output, _printing_to(output.fileno()):
        try:
            return command(["fit", *arguments]), None
        except UserError as error:
            print(f"looped fit: error: {error}", file=sys.stderr)
            return USER_ERROR_STATUS, str(error)
        except (Exception, SystemExit) as error:
            traceback.print_exc()
            return 1, f"{type(error).__name__}: {error} (see {log})"


@contextlib.contextmanager
def _printing_to(descriptor: int) -> Iterator[None]:
    """Send standard output and error of this process, C libraries included, to a file."""
    kept = os.dup(1), os.dup(2)
    try:
        for stream in (1, 2):
            os.dup2(descriptor, stream)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for stream, original in zip((1, 2), kept, strict=True):
            os.dup2(original, stream)
            os.close(original)


if __name__ == "__main__":
    main()
