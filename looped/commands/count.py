"""Parameters by group and training FLOPs per token of a configuration, without training it.

Takes the same --model.* arguments as `looped fit`, or the `model` section of a configuration:

    looped count --model.width 640 --model.num_heads 5 --model.recurrences 4
    looped count --config configs/demo.yaml --model.recurrences 8 --json -
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from looped.architecture import CONVENTIONS
from looped.atomic_write import write_atomically
from looped.errors import UserError
from looped.model_arguments import (
    ARCHITECTURE_ARGUMENTS,
    TRAINING_ARGUMENTS,
    architecture_of,
    refuse_unknown,
)
from looped.yaml_mapping import read_mapping


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
    architecture = architecture_of(values)
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
    """A configuration's `model` section."""
    try:
        content = read_mapping(path)
    except UserError as error:
        raise UserError(f"--config {path}: {error}") from error
    section = content.get("model")
    if not isinstance(section, dict):
        raise UserError(f"--config {path}: has no section `model`")
    try:
        refuse_unknown(section)
    except UserError as error:
        raise UserError(f"--config {path}: {error}") from error
    return dict(section)


def _yaml(text: str) -> Any:
    """A value of the command line, read as YAML like `looped fit` does."""
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f"{text!r} is not a value") from error


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
