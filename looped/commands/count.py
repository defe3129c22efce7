"""Parameters by group and training FLOPs per token of a configuration, without training it.

Takes the same --model.* arguments as `looped fit`, or the `model` section of a configuration:

    looped count --model.width 640 --model.num_heads 5 --model.recurrences 4
    looped count --config configs/demo.yaml --model.recurrences 8 --json -
"""

import argparse
import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from looped.architecture import CONVENTIONS, Architecture
from looped.atomic_write import write_atomically
from looped.errors import UserError
from looped.optimizers.learning_rates import LearningRates
from looped.parser_errors import one_line
from looped.yaml_mapping import read_mapping

# What `fit` takes under --model beside the architecture; it changes nothing that is counted.
TRAINING_ARGUMENTS = (
    *(field.name for field in fields(LearningRates)),
    "optimizer_args",
    "schedule",
    "warmup_fraction",
    "decay_fraction",
    "compile_blocks",
    "eval_recurrences",
)
ARCHITECTURE_ARGUMENTS = tuple(field.name for field in fields(Architecture))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `looped count`."""
    parser.add_argument("--config", type=Path, help="a configuration of `looped fit`")
    parser.add_argument("--measured", action="store_true", help="add what torch's counter sees")
    parser.add_argument("--json", metavar="FILE", help="write the counts as JSON; - = stdout")
    model = parser.add_argument_group("model", "the constructor arguments, as in `looped fit`")
    for name in (*ARCHITECTURE_ARGUMENTS, *TRAINING_ARGUMENTS):
        model.add_argument(f"--model.{name}", dest=name, default=None, metavar="VALUE")


def run(arguments: argparse.Namespace) -> int:
    """Count and print."""
    values = {} if arguments.config is None else _model_section(arguments.config)
    for name in ARCHITECTURE_ARGUMENTS:
        if getattr(arguments, name) is not None:
            values[name] = _yaml(getattr(arguments, name))
    architecture = _architecture(values)
    params = architecture.parameter_groups().as_record()
    flops: dict[str, int] = {
        "paper": architecture.flops_per_token("paper"),
        "causal": architecture.flops_per_token("causal"),
    }
    assert tuple(flops) == CONVENTIONS
    if arguments.measured:
        from looped.modules.measure import measured_flops_per_token

        flops["measured"] = measured_flops_per_token(architecture)
    counts = {"params": params, "flops_per_token": flops}
    if arguments.json is None:
        _print(counts)
    elif arguments.json == "-":
        json.dump(counts, sys.stdout, indent=2)
        print()
    else:
        _write(Path(arguments.json), counts)
    return 0


def _write(path: Path, counts: dict[str, Any]) -> None:
    try:
        write_atomically(path, json.dumps(counts, indent=2) + "\n")
    except OSError as error:
        raise UserError(f"--json {path}: {error.strerror}") from error


def _model_section(path: Path) -> dict[str, Any]:
    """The architecture's part of a configuration's `model` section."""
    try:
        content = read_mapping(path)
    except UserError as error:
        raise UserError(f"--config {path}: {error}") from error
    section = content.get("model")
    if not isinstance(section, dict):
        raise UserError(f"--config {path}: has no section `model`")
    known = _dotted((*ARCHITECTURE_ARGUMENTS, *TRAINING_ARGUMENTS))
    for name in section:
        if f"model.{name}" not in known:
            message = f"Group 'model' does not accept option '{name}'"
            raise UserError(f"--config {path}: {one_line(message, known)}")
    return {name: value for name, value in section.items() if name in ARCHITECTURE_ARGUMENTS}


def _dotted(names: tuple[str, ...]) -> list[str]:
    return [f"model.{name}" for name in names]


def _yaml(text: str) -> Any:
    """A value of the command line, read as YAML like `looped fit` does."""
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f"{text!r} is not a value") from error


def _architecture(values: dict[str, Any]) -> Architecture:
    from jsonargparse import ArgumentParser

    parser = ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(Architecture, "model")
    try:
        checked = parser.parse_object({"model": values})
    except argparse.ArgumentError as error:
        raise UserError(one_line(str(error), _dotted(ARCHITECTURE_ARGUMENTS))) from error
    return Architecture(**vars(checked.model))


def _print(counts: dict[str, Any]) -> None:
    params = dict(counts["params"])
    width = max(len(f"{value:,}") for value in counts["flops_per_token"].values())
    width = max(width, len(f"{params['total']:,}"))
    print("parameters")
    for name, value in params.items():
        print(f"  {name:<12}{value:>{width},}")
    print("training FLOPs per token")
    for name, value in counts["flops_per_token"].items():
        print(f"  {name:<12}{value:>{width},}")
