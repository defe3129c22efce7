"""A resumed run is the same experiment, or says that it is not."""

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_info, rank_zero_warn
from typing_extensions import override

from looped.callbacks.lookup import callback_of
from looped.callbacks.run_record import RunRecord
from looped.errors import UserError
from looped.record import CHECKPOINT_KEY, Record

# Arguments of the model that change how it runs, not what it learns.
HARMLESS = ("activation_checkpointing", "compile_blocks", "eval_recurrences")


class ResumeGuard(Callback):
    """Compares a run with the checkpoint it is resumed from, before anything is trained.

    The configuration at hand wins over the checkpoint's; every difference is named. One that
    makes it another experiment (model, training rule, data, horizon, recipe, seed) is refused.

    Args:
        allow_changes: go on with another experiment all the same.
    """

    def __init__(self, *, allow_changes: bool = False) -> None:
        self.allow_changes = allow_changes

    @override
    def on_load_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        if trainer.state.fn != "fit":
            return
        before = Record.from_json(checkpoint[CHECKPOINT_KEY])
        now = callback_of(trainer, RunRecord).record(trainer, pl_module)
        experiment = _changed(_identity(before), _identity(now))
        arguments = _changed(
            checkpoint.get("hyper_parameters", {}) | before.model,
            dict(pl_module.hparams) | now.model,
        )
        experiment |= {f"model.{k}": v for k, v in arguments.items() if k not in HARMLESS}
        for name in sorted(set(arguments) & set(HARMLESS)):
            rank_zero_info(f"Resuming with model.{name} {_words(arguments[name])}")
        if not experiment:
            return
        listed = "; ".join(f"{name} {_words(pair)}" for name, pair in experiment.items())
        if not self.allow_changes:
            raise UserError(
                f"the checkpoint is of another experiment: {listed}. Take these changes back, "
                "choose another --run.dir, or insist with --allow-changes"
            )
        rank_zero_warn(f"Resuming as another experiment: {listed}")


def _identity(record: Record) -> dict[str, Any]:
    """What makes a record's run the experiment it is, beside the model's arguments."""
    data = record.data or {}
    return {
        "run.recipe": record.recipe,
        "seed_everything": record.seed,
        "compute.convention": record.flops["convention"],
        "data fingerprint": data.get("fingerprint"),
        "planned steps": record.progress["planned_steps"],
        "planned tokens": record.progress["planned_tokens"],
    }


def _changed(before: dict[str, Any], now: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Names that both know, with the two values that differ."""
    both = [name for name in before if name in now]
    return {name: (before[name], now[name]) for name in both if before[name] != now[name]}


def _words(pair: tuple[Any, Any]) -> str:
    return f"{pair[1]} instead of {pair[0]}"
