"""One worker process of a sweep: trains one run after another (`python -m looped.sweeps.worker`).

Importing torch and lightning takes seconds, so a process is used for many runs. The launcher
sends one JSON line per run on standard input, {"arguments": [...], "log": FILE}, and gets one back
on standard output: {"error": null} or {"error": "what went wrong"}. What the run itself prints
goes to its log. When standard input closes the launcher is gone, and the worker goes too, in the
middle of a run if need be: its checkpoint is the place to take up from.
"""

import contextlib
import json
import os
import queue
import sys
import threading
import traceback
from typing import Any

INTERRUPTED = 3


def main() -> None:
    """Train what comes in until standard input closes."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    jobs: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(jobs,), daemon=True).start()
    while True:
        job = jobs.get()
        replies.write(json.dumps({"error": _train(job)}) + "\n")


def _listen(jobs: queue.Queue[dict[str, Any]]) -> None:
    for line in sys.stdin:
        jobs.put(json.loads(line))
    os._exit(INTERRUPTED)


def _train(job: dict[str, Any]) -> str | None:
    """Train one run; returns one line about what went wrong, or nothing."""
    from looped.errors import UserError
    from looped.training import main as train

    with open(job["log"], "a", encoding="utf-8") as log, _printing_to(log.fileno()):
        try:
            train(["fit", *job["arguments"]])
        except UserError as error:
            return str(error)
        except (Exception, SystemExit) as error:
            traceback.print_exc()
            return f"{type(error).__name__}: {error} (see {job['log']})"
    return None


@contextlib.contextmanager
def _printing_to(descriptor: int) -> Any:
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
