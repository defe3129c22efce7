"""One training run from a configuration: the LightningCLI behind fit, validate, test and predict.

The measuring callbacks are groups of the configuration of their own (run, compute, validation,
horizon, checkpoints), so they are always there, whatever the YAML's list of callbacks says.
"""

import atexit
import contextlib
import itertools
import os
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Literal, NoReturn

import torch
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.callbacks import ProgressBar
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI
from lightning.pytorch.utilities import rank_zero_info
from typing_extensions import override

from looped.architecture import Architecture
from looped.callbacks.checkpoints import Checkpoints
from looped.callbacks.compute import Compute
from looped.callbacks.divergence import Divergence
from looped.callbacks.graceful_stop import GracefulStop, StopRequested
from looped.callbacks.horizon import Horizon
from looped.callbacks.lookup import callback_of
from looped.callbacks.resume_guard import ResumeGuard
from looped.callbacks.run_record import RunRecord
from looped.callbacks.training_progress import TrainingProgress
from looped.callbacks.validation_loss import ValidationLoss
from looped.changed_settings import changed_settings
from looped.datamodules.token_data import TokenDataModule
from looped.errors import UserError
from looped.modules.looped_lm import LoopedLM
from looped.optimizers.recipe import make_optimizer
from looped.parser_errors import CANNOT_BE_MADE, one_line
from looped.record import read_checkpoint
from looped.run_directory import (
    RunDirectory,
    existing_checkpoint,
    refuse_unusable,
    refuse_used,
)
from looped.run_summary import run_summary
from looped.silence import silence_what_is_not_the_users
from looped.strategies import check_strategy
from looped.yaml_mapping import read_mapping, refuse_repeated_keys

TOKEN_LOSSES_FILE = "token_losses.pt"

DIVERGED_STATUS = 1
SIGNAL_STATUS = 128  # plus the signal's number, as shells have it


MEASURING_CALLBACKS = {
    "compute": Compute,
    "validation": ValidationLoss,
    "horizon": Horizon,
    "run": RunRecord,
    "divergence": Divergence,
    "checkpoints": Checkpoints,
}


def main(argv: Sequence[str]) -> int:
    """Run `fit`, `validate`, `test` or `predict`.

    Args:
        argv: the subcommand and its arguments.

    Returns:
        The exit status: 0, 1 when the run diverged, 128 + the signal's number when one ended it.

    Raises:
        UserError: a mistake in the configuration, the data or the run directory.
    """
    silence_what_is_not_the_users()
    graceful_stop = GracefulStop()
    try:
        with graceful_stop.listening() if argv[0] == "fit" else contextlib.nullcontext():
            cli = LoopedCLI(args=list(argv), graceful_stop=graceful_stop)
    except MisconfigurationException as error:  # Lightning's word for a mistake of the user's
        raise UserError(" ".join(str(error).split())) from error
    atexit.register(_leave_the_others)
    if cli.stop is not None:
        return SIGNAL_STATUS + cli.stop.signum
    return DIVERGED_STATUS if cli.diverged else 0


def _leave_the_others() -> None:
    """End what joins several processes before Python takes it apart; Lightning does so for NCCL.

    Threads of gloo that outlive the interpreter now and then abort a process whose run is complete.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def check(argv: Sequence[str]) -> int:
    """Build everything that a `fit` would, weights aside, and open its data; train nothing.

    Args:
        argv: as of `main`.

    Returns:
        0.

    Raises:
        UserError: as `main`, for what is found before the first step.
    """
    silence_what_is_not_the_users()
    try:
        CheckCLI(args=list(argv), graceful_stop=GracefulStop())
    except MisconfigurationException as error:
        raise UserError(" ".join(str(error).split())) from error
    return 0


class OneLineParser(LightningArgumentParser):
    """A parser whose complaints are `UserError`s of one line that offer the nearest valid name."""

    _family: ClassVar[list["OneLineParser"]] = []  # the main parser reports for its subcommands

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, allow_abbrev=False, **kwargs)
        self._family.append(self)

    @override
    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        names: dict[str, Any] = {}
        for parser in self._family:
            names |= vars(parser.get_defaults(skip_validation=True).as_flat())
        raise UserError(one_line(message, names))


def _refuse_repeated_keys(args: Sequence[str]) -> None:
    """In what --config names, or holds: jsonargparse takes the last of two without a word."""
    named = [after for option, after in itertools.pairwise(args) if option in ("-c", "--config")]
    named += [arg.removeprefix("--config=") for arg in args if arg.startswith("--config=")]
    for config in named:
        try:
            if os.path.isfile(config):
                read_mapping(Path(config))
            else:
                refuse_repeated_keys(config)
        except UserError as error:
            raise UserError(f"--config {' '.join(config.split())}: {error}") from error


class LoopedCLI(LightningCLI):
    """LightningCLI for `LoopedLM` on `TokenDataModule` with the measuring callbacks.

    Attributes:
        stop: what ended the training before its horizon; null when no signal did.
    """

    def __init__(self, args: list[str], graceful_stop: GracefulStop) -> None:
        self._called = args[0]
        self._graceful_stop = graceful_stop
        self.stop: StopRequested | None = None
        super().__init__(
            LoopedLM,
            TokenDataModule,
            save_config_callback=RunDirectory,
            seed_everything_default=0,
            # Lightning's model summary counts zero FLOPs here: `looped count` counts them.
            trainer_defaults={
                "max_epochs": -1,
                "num_sanity_val_steps": 0,
                "enable_model_summary": False,
            },
            parser_class=OneLineParser,
            parser_kwargs={"prog": "looped"},
            auto_configure_optimizers=False,
            args=args,
        )

    @override
    def subcommands(self) -> dict[str, set[str]]:  # type: ignore[override]  # static in Lightning
        """The one that was called: parsers of all four take a quarter of a second of every run."""
        return {self._called: super().subcommands()[self._called]}

    @override
    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        parser.add_argument(
            "--allow_changes",
            "--allow-changes",
            action="store_true",
            help="resume although the configuration is of another experiment than the checkpoint",
        )
        for group, callback in MEASURING_CALLBACKS.items():
            parser.add_lightning_class_args(callback, group)
        parser.link_arguments("run.dir", "trainer.default_root_dir")
        parser.link_arguments("model.vocab_size", "data.vocab_size")
        parser.link_arguments("model.seq_len", "data.seq_len")

    @override
    def parse_arguments(self, parser: LightningArgumentParser, args: Any) -> None:
        _refuse_repeated_keys(args)
        super().parse_arguments(parser, args)

    @override
    def _set_seed(self) -> None:
        try:
            super()._set_seed()
        except ValueError as error:
            raise UserError(f"seed_everything: {error}") from error

    @override
    def _parse_ckpt_path(self) -> None:
        """Keep the user's values; Lightning would replace them by the checkpoint's, silently.

        See Lightning-AI/pytorch-lightning#21455.
        """

    @override
    def before_instantiate_classes(self) -> None:
        config = self.config[self.subcommand]
        if config.trainer.fast_dev_run:
            raise UserError(
                "trainer.fast_dev_run would leave a run that is none: try a run out with "
                "--horizon.steps 5 and a --run.dir of its own"
            )
        run_dir = Path(config.run.dir)
        refuse_unusable(run_dir)
        if config.ckpt_path is not None:
            checkpoint = existing_checkpoint(run_dir, config.ckpt_path)
            _refuse_other_model(checkpoint, config.model, to_train=self.subcommand == "fit")
            if self.subcommand == "fit":
                self._name_changes(checkpoint)
            config.ckpt_path = str(checkpoint)
            config.weights_only = True  # nothing in our checkpoints needs to run code
        elif self.subcommand != "fit":
            raise UserError("name the checkpoint to evaluate: --ckpt_path last, or a file")
        elif self.subcommand == "fit":
            refuse_used(run_dir)

    @override
    def instantiate_classes(self) -> None:
        try:
            super().instantiate_classes()
        except ValueError as error:
            if isinstance(error, UserError) or CANNOT_BE_MADE not in str(error):
                raise
            raise UserError(one_line(str(error), ())) from error

    def _name_changes(self, checkpoint: Path) -> None:
        config = self.config[self.subcommand]
        changed = changed_settings(
            checkpoint,
            self._parser(self.subcommand).dump(config, skip_none=False),
            allow_changes=config.allow_changes,
        )
        for name, (before, now) in changed.items():
            rank_zero_info(f"Resuming with {name} {now} instead of {before}")

    @override
    def instantiate_trainer(self, **kwargs: Any) -> Trainer:
        config = self._get(self.config_init, "trainer")
        if config.logger in (None, True):
            kwargs["logger"] = False  # RunDirectory adds the default ones when training starts
        shows_progress = config.enable_progress_bar is not False and not _has_bar(config.callbacks)
        if shows_progress:
            kwargs["enable_progress_bar"] = False  # Lightning's own, which knows no horizon
        if config.precision is None:
            kwargs["precision"] = _default_precision(config.accelerator)
        try:
            trainer = super().instantiate_trainer(**kwargs)
        except ValueError as error:
            raise UserError(f"trainer: {' '.join(str(error).split())}") from error
        check_strategy(trainer.strategy)
        callbacks: list[Callback] = trainer.callbacks  # type: ignore[attr-defined]  # a connector sets it
        place = len(callbacks) - 1  # after everything that counts, before the checkpoints
        callbacks.insert(place, self._graceful_stop)
        callbacks.insert(
            place, ResumeGuard(allow_changes=bool(self._get(self.config, "allow_changes")))
        )
        if shows_progress:
            callbacks.insert(place, TrainingProgress())
        return trainer

    @override
    def _run_subcommand(self, subcommand: str) -> None:
        """Run it; however training ended, say in three lines what came of it."""
        try:
            super()._run_subcommand(subcommand)
        except StopRequested as stop:
            self.stop = stop
        if subcommand == "fit" and self.trainer.is_global_zero:
            if self.stop is not None:
                print(f"looped fit: {self.stop}", file=sys.stderr)
            print(run_summary(Path(self.trainer.default_root_dir)), flush=True)

    def after_predict(self) -> None:
        """Keep what `predict` computed: nats of every validation target, row by row."""
        batches = self.trainer.predict_loop.predictions
        directory = Path(self.trainer.default_root_dir)
        if self.trainer.is_global_zero and batches:
            unfinished = directory / f".{TOKEN_LOSSES_FILE}"
            torch.save(torch.cat(list(batches)), unfinished)
            os.replace(unfinished, directory / TOKEN_LOSSES_FILE)
            print(f"{directory / TOKEN_LOSSES_FILE}: nats of every validation target (rows, T)")

    @property
    def diverged(self) -> bool:
        """Whether the run that this command trained was lost."""
        return (
            self.subcommand == "fit" and callback_of(self.trainer, RunRecord).status == "diverged"
        )


class CheckCLI(LoopedCLI):
    """What `fit` builds before it trains, around a model that takes no memory."""

    @override
    def instantiate_classes(self) -> None:
        with torch.device("meta"):
            super().instantiate_classes()

    @override
    def _run_subcommand(self, subcommand: str) -> None:
        self.datamodule.setup(subcommand)
        model = self.model  # its optimizer awaits a plan, which changes no more than the rates
        make_optimizer(model.network, model.rates, arguments=model.optimizer_args)


def _refuse_other_model(checkpoint: Path, model: Any, *, to_train: bool) -> None:
    """A checkpoint's weights belong to its own architecture.

    To train, what fits the weights may differ: the resume guard judges that. To evaluate, nothing
    may but the truncation, which the forward pass does not know.
    """
    names = [f.name for f in fields(Architecture)]
    saved = read_checkpoint(checkpoint).model
    before = Architecture(**{name: saved[name] for name in names if name in saved})
    now = Architecture(**{name: model[name] for name in names})
    if to_train and now.parameter_groups() == before.parameter_groups():
        return
    changed = [
        f"{name} {getattr(now, name)} instead of {getattr(before, name)}"
        for name in names
        if getattr(now, name) != getattr(before, name) and name != "truncation_depth"
    ]
    if changed:
        raise UserError(
            f"checkpoint {checkpoint} is of another model: {', '.join(changed)}"
            + ("" if to_train else " (other recurrence counts: --model.eval_recurrences)")
        )


def _has_bar(callbacks: Callback | list[Callback] | None) -> bool:
    """Whether the user brings a progress bar."""
    listed = callbacks if isinstance(callbacks, list) else [callbacks]
    return any(isinstance(callback, ProgressBar) for callback in listed)


def _default_precision(accelerator: str) -> Literal["32-true", "bf16-mixed"]:
    """bfloat16 autocast where a GPU does it in hardware, else float32."""
    on_gpu = accelerator not in ("cpu", "mps", "tpu") and torch.cuda.is_available()
    return "bf16-mixed" if on_gpu and torch.cuda.is_bf16_supported() else "32-true"
