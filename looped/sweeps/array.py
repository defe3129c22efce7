"""The runs of a sweep as one SLURM array, through submitit."""

import contextlib
import io
import os
import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from looped.errors import UserError
from looped.sweeps.base import Base
from looped.sweeps.messages import job_of
from looped.sweeps.plan import PlannedRun
from looped.sweeps.run_task import RunTask

FOLDER = "slurm"
MOST_TIMEOUTS = 1000
"""How often a run may run out of its task's time and be requeued."""


def array_executor(
    base: Base, *, out: Path, jobs: int, options: Mapping[str, Any], cluster: str = "slurm"
) -> Any:
    """What submits the runs of a sweep; writes nothing yet.

    Args:
        base: of the runs; nodes and tasks_per_node follow from its trainer section.
        out: directory of the sweep; submitit's files will go into a folder of this array's own in
            its folder `slurm`.
        jobs: tasks at a time.
        options: further parameters of `submitit.AutoExecutor.update_parameters`, which win over
            those derived from the base.
        cluster: of submitit; `local` runs the tasks on this machine.

    Raises:
        UserError: submitit is not installed, there is no SLURM, or an option is unknown.
    """
    try:
        import submitit
    except ImportError:
        raise UserError("--launcher slurm needs submitit: pip install 'looped[slurm]'") from None
    now = datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    parameters: dict[str, Any] = {
        "name": out.name,
        "nodes": base.nodes,
        "tasks_per_node": base.processes // base.nodes,
        "slurm_array_parallelism": jobs,
        "slurm_srun_args": ["--kill-on-bad-exit=1"],  # a run of several ends with its first process
    }
    try:
        executor = submitit.AutoExecutor(
            folder=out / FOLDER / f"{now}-{os.getpid()}",
            cluster=cluster,
            slurm_max_num_timeout=MOST_TIMEOUTS,
        )
        executor.update_parameters(**(parameters | dict(options)))
    except (RuntimeError, ValueError, NameError, TypeError, AssertionError) as error:
        raise UserError(f"--launcher slurm: {' '.join(str(error).split())}") from error
    return executor


def earlier_arrays(out: Path) -> int:
    """How many arrays have been submitted for a sweep directory before."""
    return sum(path.is_dir() for path in (out / FOLDER).glob("*"))


def submit_array(executor: Any, runs: Sequence[PlannedRun]) -> list[Any]:
    """Submit one task per run, all in one array.

    Args:
        executor: made by `array_executor`.
        runs: to train, at least one.

    Returns:
        submitit's jobs, one per run.

    Raises:
        UserError: the scheduler refuses; what submitit has written for it is removed.
    """
    folder = Path(executor.folder)
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # sbatch's words are in the error
            submitted: list[Any] = executor.map_array(RunTask(), [job_of(run) for run in runs])
    except (RuntimeError, OSError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # another launcher has put something into it
            for path in made[1:]:
                path.rmdir()
        raise UserError(
            f"--launcher slurm: nothing was submitted: {' '.join(str(error).split())}"
        ) from error
    return submitted
