"""The run directory: what may go into it, and the configuration and training curve that do.

A directory that holds a run is resumed or left alone, never trained into anew; what earlier starts
left is kept beside what the new one writes.
"""

import os
import zipfile
from pathlib import Path
from typing import Any, TextIO

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.cli import SaveConfigCallback
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from typing_extensions import override

from looped.atomic_write import write_atomically
from looped.errors import UserError
from looped.file_lock import LOOK_S, is_locked, lock
from looped.record import (
    CHECKPOINT_DIR,
    CONFIG_FILE,
    LAST_CHECKPOINT,
    LOCK_FILE,
    METRICS_FILE,
    RUN_FILE,
    RecordError,
    read_checkpoint,
    read_run_file,
)


class RunDirectory(SaveConfigCallback):
    """Puts the configuration and the training curve into the run directory, once all is well.

    Until training really starts nothing is written: a mistake found in the setup of data, model
    or horizon leaves no file behind. A resumed run keeps the configurations and curves of its
    earlier starts.

    The curve is metrics.csv, which the other commands read, and events for TensorBoard. Loggers
    that the configuration names take the place of TensorBoard's; `logger: false` means none.
    """

    @override
    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Nothing yet."""

    _lock: TextIO | None = None
    _first_step = 0
    _is_over = False  # the start before reached the horizon: this one leaves the files as they are

    @override
    def on_load_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        self._first_step = checkpoint["global_step"]

    @override
    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        directory = Path(trainer.default_root_dir)
        if trainer.is_global_zero:
            self._lock = _sole_writer(directory)
        self._is_over = not self.config.allow_changes and _is_complete(directory)
        if self.config.trainer.logger is False or self._is_over:
            return
        if trainer.is_global_zero:
            _keep_metrics(directory)
        curve = CSVLogger(directory, name="", version="")
        trainer.loggers = [curve, *(trainer.loggers or [self._tensorboard(directory)])]

    def _tensorboard(self, directory: Path) -> TensorBoardLogger:
        """Events in the run directory itself, so that `tensorboard --logdir` shows its name.

        A killed run has logged steps that it takes again when resumed: those are purged.
        """
        return TensorBoardLogger(
            directory,
            name="",
            version="",
            default_hp_metric=False,
            purge_step=self._first_step or None,
        )

    @override
    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.is_global_zero and not self._is_over:
            step = trainer.global_step
            name = CONFIG_FILE if step == 0 else f"config-step={step:08d}.yaml"
            text = self.parser.dump(self.config, skip_none=False)
            write_atomically(Path(trainer.default_root_dir) / name, text)

    @override
    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self._release()

    @override
    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def existing_checkpoint(run_dir: Path, ckpt_path: str) -> Path:
    """The file that `--ckpt_path` means; `last` is the newest of the run directory."""
    path = run_dir / CHECKPOINT_DIR / LAST_CHECKPOINT if ckpt_path == "last" else Path(ckpt_path)
    if not path.exists():
        raise UserError(f"checkpoint {path} does not exist: leave --ckpt_path out to start anew")
    remedy = "name an earlier one"
    if ckpt_path == "last":
        remedy += f", or remove {run_dir} to start anew"
    try:
        read_checkpoint(path)
    except RecordError as error:
        raise UserError(f"checkpoint {path}: {error}; {remedy}") from error
    with zipfile.ZipFile(path) as archive:
        damaged = archive.testzip()  # the tensors too, which the record does not touch
    if damaged is not None:
        raise UserError(f"checkpoint {path}: damaged at {damaged}; {remedy}")
    return path


def refuse_unusable(run_dir: Path) -> None:
    """A run directory must be a directory, or have a place to become one."""
    if run_dir.exists() and not run_dir.is_dir():
        raise UserError(f"run directory {run_dir} is a file: choose another --run.dir")


def _sole_writer(run_dir: Path) -> TextIO:
    """Hold the run directory; the system releases it however this process ends."""
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        held = lock(run_dir / LOCK_FILE, patience_s=LOOK_S)
    except OSError as error:
        raise UserError(
            f"run directory {run_dir} cannot be written: {error.strerror}; choose another --run.dir"
        ) from error
    if held is None:
        raise _at_work(run_dir)
    return held


def _at_work(run_dir: Path) -> UserError:
    return UserError(
        f"another process is training in {run_dir}: wait for it, or choose another --run.dir"
    )


def refuse_used(run_dir: Path) -> None:
    """A directory that holds a run, or in which one is trained, is not trained into anew."""
    if is_locked(run_dir / LOCK_FILE):
        raise _at_work(run_dir)
    finished = False
    if (run_dir / RUN_FILE).exists():
        try:
            finished = read_run_file(run_dir / RUN_FILE).status in ("complete", "diverged")
        except RecordError as error:
            raise UserError(f"{run_dir / RUN_FILE}: {error}; choose another --run.dir") from error
    requeued = any(run_dir.glob("hpc_ckpt_*.ckpt"))  # by SLURM: Lightning resumes it by itself
    stopped = (run_dir / CHECKPOINT_DIR / LAST_CHECKPOINT).exists() and not requeued
    if finished or stopped:
        raise UserError(
            f"run directory {run_dir} already holds a run: resume it with --ckpt_path last, or "
            "choose another --run.dir"
        )


def _is_complete(run_dir: Path) -> bool:
    """Whether the record there says that its run reached its horizon and was measured there."""
    try:
        return read_run_file(run_dir / RUN_FILE).status == "complete"
    except RecordError:
        return False


def _keep_metrics(run_dir: Path) -> None:
    """Set the training curve of the start before aside: the logger begins a new file."""
    metrics = run_dir / METRICS_FILE
    if metrics.exists():
        earlier = len(list(run_dir.glob("metrics-start=*.csv")))
        os.replace(metrics, run_dir / f"metrics-start={earlier + 1}.csv")
