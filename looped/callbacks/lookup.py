"""How a measuring callback finds another, or the data: through the trainer."""

from typing import Any, TypeVar

from lightning.pytorch import Callback, Trainer

from looped.errors import UserError

CallbackT = TypeVar("CallbackT", bound=Callback)


def callback_of(trainer: Trainer, kind: type[CallbackT]) -> CallbackT:
    """The trainer's callback of a class.

    Raises:
        UserError: the trainer has none (only possible outside `looped fit`, which adds them all).
    """
    for callback in trainer.callbacks:  # type: ignore[attr-defined]  # set by a connector
        if isinstance(callback, kind):
            return callback
    raise UserError(f"the trainer lacks the callback {kind.__name__}: add it to `callbacks`")


def of_data(trainer: Trainer, name: str, default: Any = None) -> Any:
    """An attribute of the trainer's data module; the default where either is missing."""
    data = trainer.datamodule  # type: ignore[attr-defined]  # set by a connector
    return getattr(data, name, default)
