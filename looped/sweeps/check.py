"""Finds the mistakes that all runs of a sweep share, before any run starts."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from looped.errors import UserError
from looped.sweeps.plan import PlannedRun
from looped.sweeps.workers import Workers

POLL_S = 0.5

NOT_THIS_MACHINE = tuple(
    f"--trainer.{setting}"
    for setting in (
        "accelerator=cpu",
        "strategy=auto",
        "devices=1",
        "num_nodes=1",
        "precision=null",
    )
)


def refuse_mistakes(runs: Sequence[PlannedRun], *, workers: Workers, elsewhere: bool) -> None:
    """Have a worker look whether one run of each recipe could start.

    The runs of a recipe differ in sizes and horizons, which planning has checked: what else keeps
    one from starting keeps them all. Nothing is written into the directory of the sweep.

    Args:
        runs: that are to be trained.
        workers: they may train the runs afterwards; none is at work.
        elsewhere: the runs train on other machines: this one's devices say nothing about them.

    Raises:
        UserError: a run cannot start; in the words of `looped fit`.
    """
    one_each: dict[str, PlannedRun] = {}
    for run in runs:
        known = one_each.setdefault(run.recipe, run)
        if known.architecture.recurrences == 1:  # the arguments of a recipe are of looped runs
            one_each[run.recipe] = run
    extra = NOT_THIS_MACHINE if elsewhere else ()
    with tempfile.TemporaryDirectory(prefix="looped-check-") as folder:
        for run in one_each.values():
            tried = replace(run, directory=Path(folder) / run.name)
            workers.start(tried, extra=extra, check_only=True)
            while not (ended := workers.replies(POLL_S)):
                pass
            ((_, reply),) = ended
            if reply.outcome == "failed":
                raise UserError(f"run {run.name} cannot start: {reply.error}")
