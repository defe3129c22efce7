"""One run as a task of a SLURM array, through submitit: same lock, same records, requeue-safe.

submitit tells a task by SIGUSR2 that its time is up or that it is preempted. The run then writes a
checkpoint and ends, the task is requeued, and its next start resumes. A task that SLURM itself
kills and requeues resumes likewise, from its last regular checkpoint.
"""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from looped.sweeps.failures import record_failure
from looped.sweeps.fit_process import FitProcess
from looped.sweeps.locks import take_lock
from looped.sweeps.messages import Job
from looped.sweeps.status import can_resume, is_finished
from looped.sweeps.worker import judge

if TYPE_CHECKING:
    from submitit.helpers import DelayedSubmission

POLL_S = 0.1
RANK_VARIABLES = ("SLURM_PROCID", "SUBMITIT_LOCAL_GLOBALID")


class TaskFailed(Exception):
    """A run failed; submitit reports it as the task's error."""


class RunTask:
    """What a task does; submitit pickles it by name and calls it with a `Job`."""

    _process: FitProcess | None = None

    def __call__(self, job: Job) -> str:
        """Train the run of a job; every process of a run of several calls this.

        Returns:
            The outcome, as of `Reply`.

        Raises:
            TaskFailed: the run failed; the failure is recorded in the sweep directory.
        """
        directory = Path(job.directory)
        first = all(os.environ.get(name, "0") == "0" for name in RANK_VARIABLES)
        lock: TextIO | None = None
        if first:
            lock = take_lock(directory)
            if lock is None:
                return "taken"
        try:
            return self._train(job, directory, lock=lock)
        finally:
            if lock is not None:
                lock.close()

    def _train(self, job: Job, directory: Path, *, lock: TextIO | None) -> str:
        if is_finished(directory):
            return "finished"
        arguments = [*job.arguments]
        if can_resume(directory):
            arguments.append("--ckpt_path=last")
        Path(job.log).parent.mkdir(parents=True, exist_ok=True)
        self._process = FitProcess(arguments, log=Path(job.log), lock=lock)
        while not self._process.has_ended():
            time.sleep(POLL_S)
        status = self._process.wait()
        if lock is None:
            return "trained" if status == 0 else "stopped"  # the first process judges
        error = None if status == 0 else self._process.last_words()
        reply = judge(directory, status, error)
        if reply.outcome == "failed":
            record_failure(directory, reply.error or "for no known reason")
            raise TaskFailed(reply.error)
        return reply.outcome

    def checkpoint(self, job: Job) -> "DelayedSubmission":
        """Called by submitit in its signal handler: stop the run, then submit the same again."""
        from submitit.helpers import DelayedSubmission

        if self._process is not None:
            self._process.stop()
            while not self._process.has_ended():
                time.sleep(POLL_S)
        return DelayedSubmission(RunTask(), job)
