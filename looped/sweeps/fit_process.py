"""One run trained by a `looped fit` of its own, for runs of several processes or nodes.

Lightning's strategies start the command line they find themselves in once more per process, which
must then be `looped fit` and not a worker.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

TAIL_BYTES = 4096


class FitProcess:
    """A running `looped fit`.

    Args:
        arguments: of `looped fit`.
        log: file that its output is added to.
        lock: the run's lock, which the process keeps although its starter may die.
    """

    def __init__(self, arguments: list[str], *, log: Path, lock: IO[str] | None) -> None:
        self._log = log
        with log.open("a", encoding="utf-8") as output:
            # SIGUSR2 is how submitit announces the end of a job, to every process of it.
            before = signal.signal(signal.SIGUSR2, signal.SIG_IGN)
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "looped", "fit", *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    pass_fds=[] if lock is None else [lock.fileno()],
                )
            finally:
                signal.signal(signal.SIGUSR2, before)

    def stop(self) -> None:
        """Ask it to finish its step, write a checkpoint and end."""
        self._process.terminate()

    def has_ended(self) -> bool:
        """Whether it has; safe to ask in a signal handler, where `wait` might be interrupted."""
        try:
            what = os.WEXITED | os.WNOWAIT | os.WNOHANG
            return os.waitid(os.P_PID, self._process.pid, what) is not None
        except ChildProcessError:
            return True

    def wait(self) -> int:
        """Its exit status."""
        return self._process.wait()

    def last_words(self) -> str:
        """The last line it printed."""
        with self._log.open("rb") as stream:
            stream.seek(0, 2)
            stream.seek(max(0, stream.tell() - TAIL_BYTES))
            lines = stream.read().decode("utf-8", errors="replace").split("\n")
        words = [line.strip() for line in lines if line.strip()]
        return words[-1].removeprefix("looped fit: error: ") if words else "it printed nothing"
