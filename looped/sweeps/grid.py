"""The grid YAML: what varies between the runs of a sweep and what they share.

base: configs/demo.yaml            everything else: an ordinary `looped fit` configuration
out: runs/demo                     where the run directories go
effective_depth: 10                prelude + r x recurrent + coda, the same for every run
prelude_layers: 1
coda_layers: 1
head_dim: 16                       num_heads = width / head_dim; left out: that of the base
recurrences: [1, 2, 4, 8]
tokens: {3e5: [16, 32, 48]}        tokens: widths     or     budgets: {1e12: [32, 48]}  (FLOPs)
                                   widths of each r:  {1e12: {1: [32, 48], 8: [64]}}
recipes: {baseline: {}, truncated: {truncation_depth: half}}
controls: [unshared, injected]     runs beside the cells: docs/beyond-phi.md; left out: none
seeds: [0]
min_steps: 50                      a run of fewer optimizer steps is refused as a mistake
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from looped.controls import CONTROLS
from looped.errors import UserError
from looped.model_arguments import refuse_unknown
from looped.yaml_mapping import read_mapping

HALF = "half"  # truncation_depth: half  means  ceil(r / 2)
LONGEST_NAME = 64  # of a recipe: file names, which hold more than it, have 255 bytes
REQUIRED = ("base", "out", "effective_depth", "prelude_layers", "coda_layers", "recurrences")

LEAST = {
    "effective_depth": 1,
    "prelude_layers": 0,
    "coda_layers": 0,
    "head_dim": 1,
    "min_steps": 1,
}
"""Whole numbers of a grid, each with the lowest that makes sense."""

Widths = tuple[int, ...] | dict[int, tuple[int, ...]]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A grid YAML, read and checked for what can be checked without the base configuration.

    Attributes:
        base: the shared `looped fit` configuration.
        out: directory of the sweep.
        effective_depth: blocks a token passes through in every run.
        prelude_layers: unique blocks before the loop.
        coda_layers: unique blocks after the loop.
        recurrences: the recurrence counts r.
        head_dim: width / num_heads of every run; null = that of the base configuration.
        budgets: training FLOPs -> widths, of all recurrence counts or of each its own.
        tokens: training tokens -> widths; exactly one of the two is given.
        recipes: name -> `model` arguments that make the recipe; r = 1 is run once for all.
        controls: which controls are run beside the cells (`looped/sweeps/cells.py`).
        seeds: one run per seed.
        min_steps: fewest optimizer steps of a run.
    """

    base: Path
    out: Path
    effective_depth: int
    prelude_layers: int
    coda_layers: int
    recurrences: tuple[int, ...]
    head_dim: int | None = None
    budgets: dict[float, Widths] = field(default_factory=dict)
    tokens: dict[float, Widths] = field(default_factory=dict)
    recipes: dict[str, dict[str, Any]] = field(default_factory=lambda: {"baseline": {}})
    controls: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    min_steps: int = 50

    @property
    def horizons(self) -> tuple[str, dict[float, Widths]]:
        """Name of the horizon in `looped fit` and its values with their widths."""
        return ("budget_flops", self.budgets) if self.budgets else ("tokens", self.tokens)

    def recurrences_by_width(self, horizon: float) -> dict[int, list[int]]:
        """The widths of one horizon in ascending order, each with its recurrence counts."""
        widths = self.horizons[1][horizon]
        if not isinstance(widths, Mapping):
            return {width: sorted(self.recurrences) for width in sorted(widths)}
        every = sorted({width for own in widths.values() for width in own})
        return {width: sorted(r for r, own in widths.items() if width in own) for width in every}


def read_grid(path: Path) -> Grid:
    """Read a grid YAML.

    Args:
        path: the file; `base` and `out` in it are relative to the working directory.

    Raises:
        UserError: unreadable, an unknown or missing key, or a value of the wrong kind.
    """
    try:
        return make_grid(read_mapping(path))
    except UserError as error:
        raise UserError(f"grid {path}: {error}") from error


def make_grid(content: dict[str, Any]) -> Grid:
    """The grid of a file's content.

    Raises:
        UserError: as `read_grid`; the message leaves the file unnamed.
    """
    names = [f.name for f in fields(Grid)]
    for name in content:
        if name not in names:
            nearest = difflib.get_close_matches(str(name), names, n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else f"choose {', '.join(names)}"
            raise UserError(f"unknown name {name}: {hint}")
    for name in REQUIRED:
        if name not in content:
            raise UserError(f"the key {name} is missing")
    if ("budgets" in content) == ("tokens" in content):
        raise UserError("give exactly one of the keys budgets (FLOPs) and tokens")
    values: dict[str, Any] = {name: _path(name, content[name]) for name in ("base", "out")}
    for name, least in LEAST.items():
        if name in content and not (name == "head_dim" and content[name] is None):
            values[name] = _whole(name, content[name], least=least)
    for name, least in (("recurrences", 1), ("seeds", 0)):
        if name in content:
            values[name] = _list(name, content[name], least=least)
    for name in ("budgets", "tokens"):
        if name in content:
            values[name] = _widths_by_horizon(name, content[name], values["recurrences"])
    if "recipes" in content:
        values["recipes"] = _recipes(content["recipes"])
    if "controls" in content:
        values["controls"] = _controls(content["controls"], values["recurrences"])
    return Grid(**values)


def _path(name: str, value: Any) -> Path:
    if not isinstance(value, str) or not value.strip():
        raise UserError(f"{name}: {value!r} is not a path: write it as text")
    return Path(value).expanduser()


def _whole(name: str, value: Any, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UserError(f"{name}: {value!r} is not a whole number")
    if value < least:
        raise UserError(f"{name}: {value} is below {least}: choose {least} or more")
    return value


def _list(name: str, value: Any, *, least: int) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        raise UserError(f"{name}: {value!r} is not a list of whole numbers")
    numbers = tuple(_whole(name, entry, least=least) for entry in value)
    if len(set(numbers)) < len(numbers):
        raise UserError(f"{name}: {value} names one value twice")
    return numbers


def _controls(value: Any, recurrences: tuple[int, ...]) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise UserError(f"controls: {value!r} is not a list of {', '.join(CONTROLS)}")
    for control in value:
        if control not in CONTROLS:
            raise UserError(f"controls: {control!r} is unknown: choose {', '.join(CONTROLS)}")
    if len(set(value)) < len(value):
        raise UserError(f"controls: {value} names one value twice")
    if "injected" in value and 1 not in recurrences:
        raise UserError("controls: injected stands in cells of r = 1: add 1 to recurrences")
    if "unshared" in value and max(recurrences) == 1:
        raise UserError("controls: unshared stands in cells of r > 1: add one to recurrences")
    return tuple(value)


def _widths_by_horizon(name: str, value: Any, recurrences: tuple[int, ...]) -> dict[float, Widths]:
    if not isinstance(value, dict) or not value:
        raise UserError(f"{name}: is not a mapping of {name} to lists of widths")
    result: dict[float, Widths] = {}
    for key, widths in value.items():
        try:
            horizon = float(key)  # YAML 1.1 reads 1e12 as text
        except (TypeError, ValueError):
            raise UserError(f"{name}: {key!r} is not a number") from None
        if not 0 < horizon < float("inf"):
            raise UserError(f"{name}: {key} must be positive and finite")
        if not isinstance(widths, dict):
            result[horizon] = _list(f"{name} {key}", widths, least=1)
            continue
        if not widths:
            raise UserError(f"{name} {key}: has no widths: leave it out, or list some")
        for r in widths:
            if r not in recurrences:
                raise UserError(f"{name} {key}: {r!r} is not among recurrences {[*recurrences]}")
        result[horizon] = {r: _list(f"{name} {key}, r = {r}", widths[r], least=1) for r in widths}
    return result


# Model arguments that follow from the grid's own keys.
GRID_ARGUMENTS = (
    "recurrences",
    "width",
    "num_heads",
    "prelude_layers",
    "recurrent_layers",
    "coda_layers",
)


def _recipes(value: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(value, dict) or not value:
        raise UserError("recipes: is not a mapping of names to model arguments")
    for name, arguments in value.items():
        if not isinstance(name, str):
            raise UserError(f"recipes: {name!r} is not text: write it in quotes")
        if not re.fullmatch(r"\w[\w.+-]*", name) or len(name) > LONGEST_NAME:
            raise UserError(
                f"recipes: {name!r} cannot be part of a file name: begin with a letter or digit, "
                f"use these and . + - _, {LONGEST_NAME} of them at most"
            )
        if not isinstance(arguments, dict):
            raise UserError(f"recipes {name}: {arguments!r} is not a mapping of model arguments")
        try:
            refuse_unknown(arguments)
        except UserError as error:
            raise UserError(f"recipes {name}: {error}") from error
        for argument in arguments:
            if argument in GRID_ARGUMENTS:
                raise UserError(
                    f"recipes {name}: {argument} is the grid's to set, for the runs of a cell "
                    "differ in nothing else than the recipe"
                )
    return {name: dict(arguments) for name, arguments in value.items()}
