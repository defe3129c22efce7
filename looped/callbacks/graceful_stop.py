"""Ends a run on a signal the way it can be taken up again: step done, checkpoint written."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_info
from typing_extensions import override

from looped.callbacks.checkpoints import Checkpoints
from looped.callbacks.lookup import callback_of


class StopRequested(Exception):
    """Training ended because a signal asked for it.

    Attributes:
        signum: the signal.
        step: optimizer steps done, all of them in the checkpoint.
    """

    def __init__(self, signum: int, step: int) -> None:
        super().__init__(f"stopped by {signal.Signals(signum).name} at step {step}")
        self.signum = signum
        self.step = step


class GracefulStop(Callback):
    """On SIGTERM, SIGUSR1 or Ctrl-C: finish the step, write a checkpoint, raise `StopRequested`.

    A second signal does what it would have done without this callback. With several processes the
    signal is looked for at the logging interval, where all of them agree on it.

    A SLURM job of one process is left to Lightning's own requeueing, which is only held back to
    the end of the step: a checkpoint in the middle of one would miss its tokens. One of several is
    not left to it:
    Lightning's handlers communicate wherever the signal finds them, so that one process may wait
    in a step and another in the handler, for ever. The batch file requeues such a job
    (docs/multi-node.md).
    """

    def __init__(self) -> None:
        self._signum: int | None = None
        self._seen_step = 0
        self._before: dict[int, Any] = {}
        self._requeue: Any = None  # Lightning's handler of SIGUSR1
        self._requeue_asked = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen to the signals within this context; only the main thread can."""
        signals = [signal.SIGTERM, signal.SIGINT]
        if not _lightning_requeues():
            signals.append(signal.SIGUSR1)
        if threading.current_thread() is not threading.main_thread():
            signals = []
        self._before = {number: signal.signal(number, self._notice) for number in signals}
        try:
            yield
        finally:
            for number, handler in self._before.items():
                signal.signal(number, handler)

    def _notice(self, signum: int, frame: FrameType | None) -> None:
        self._signum = signum
        signal.signal(signum, self._before[signum])
        rank_zero_info(f"{signal.Signals(signum).name}: stopping after this step")

    @override
    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._seen_step = trainer.global_step
        if signal.SIGTERM in self._before and not _lightning_requeues():
            # Lightning has put its own handler before ours, which would end the run in the middle
            # of accumulated batches. It restores what it found when training is over.
            signal.signal(signal.SIGTERM, self._notice)
        if _lightning_requeues() and callable(signal.getsignal(signal.SIGUSR1)):
            self._requeue = signal.getsignal(signal.SIGUSR1)
            signal.signal(signal.SIGUSR1, self._notice_requeue)

    def _notice_requeue(self, signum: int, frame: FrameType | None) -> None:
        self._requeue_asked = True

    @override
    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        step = trainer.global_step
        if step == self._seen_step:  # in the middle of accumulated batches
            return
        self._seen_step = step
        if self._requeue_asked:
            self._requeue_asked = False
            self._requeue(signal.SIGUSR1, None)
        signum = self._signum or 0
        if trainer.world_size > 1:
            if step % max(trainer.log_every_n_steps, 1):  # type: ignore[attr-defined]  # a connector sets it
                return
            # one process may have the signal and another not yet: all end with the same status
            noticed = torch.tensor(signum, device=pl_module.device)
            signum = int(trainer.strategy.reduce(noticed, reduce_op="max"))
        if signum:
            callback_of(trainer, Checkpoints).save(trainer)
            raise StopRequested(signum, step)


def _lightning_requeues() -> bool:
    return SLURMEnvironment.detect() and os.environ.get("SLURM_NTASKS", "1") == "1"
