"""The `model` section of a configuration, read and checked without torch."""

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

from looped.architecture import Architecture
from looped.errors import UserError
from looped.optimizers.learning_rates import LearningRates
from looped.parser_errors import one_line

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser

ARCHITECTURE_ARGUMENTS = tuple(field.name for field in fields(Architecture))

TRAINING_ARGUMENTS = (
    *(field.name for field in fields(LearningRates)),
    "optimizer_args",
    "schedule",
    "warmup_fraction",
    "decay_fraction",
    "activation_checkpointing",
    "compile_blocks",
    "eval_recurrences",
)
"""What the model takes beside its architecture; it changes nothing that is counted."""


def refuse_unknown(names: Iterable[str]) -> None:
    """Refuse names that the model has no argument of.

    Raises:
        UserError: one is unknown; the message offers the nearest.
    """
    known = [f"model.{name}" for name in (*ARCHITECTURE_ARGUMENTS, *TRAINING_ARGUMENTS)]
    for name in names:
        if f"model.{name}" not in known:
            raise UserError(one_line(f"Group 'model' does not accept option '{name}'", known))


def architecture_of(section: Mapping[str, Any]) -> Architecture:
    """The architecture of a `model` section; arguments of the training rule are left aside.

    Raises:
        UserError: a value is missing, of the wrong kind or impossible.
    """
    values = {name: section[name] for name in ARCHITECTURE_ARGUMENTS if name in section}
    try:
        checked = _parser().parse_object({"model": values})
    except argparse.ArgumentError as error:
        known = [f"model.{name}" for name in ARCHITECTURE_ARGUMENTS]
        raise UserError(one_line(str(error), known)) from error
    return Architecture(**vars(checked.model))


@cache
def _parser() -> "ArgumentParser":
    from jsonargparse import ArgumentParser  # here: it takes a third of a second

    parser = ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(Architecture, "model")
    return parser
