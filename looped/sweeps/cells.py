"""What is trained in a cell of a grid: the recipes of its recurrence count, and their controls.

Without a loop there is nothing in which recipes could differ: r = 1 is run once for all, under the
recipe `baseline`, also by other grids of the same directory. Controls (docs/beyond-phi.md) bear the
name of the recipe that they belong to, such as `truncated-unshared`, and stand in the same cells:

    unshared    for every r > 1 and recipe: shared: false
    injected    for r = 1: the plain stack with a recipe's injection or streams, once for recipes
                with the same wiring
"""

import math
from typing import Any

from looped.errors import UserError
from looped.sweeps.base import Base
from looped.sweeps.grid import HALF, Grid

PLAIN_RECIPE = "baseline"
"""The recipe of every r = 1 run that is no control."""


def recipes_of_cell(grid: Grid, base: Base, recurrences: int) -> dict[str, dict[str, Any]]:
    """Names of the recipes of a cell, each with the `model` arguments that make it.

    Raises:
        UserError: an injected control of recipes that have no wiring, or a recipe of the name of
            another's control.
    """
    if recurrences == 1:
        injected = _injected(grid, base) if "injected" in grid.controls else {}
        return {PLAIN_RECIPE: {}} | injected
    looped = {name: _resolved(arguments, recurrences) for name, arguments in grid.recipes.items()}
    if "unshared" not in grid.controls:
        return looped
    cell: dict[str, dict[str, Any]] = {}
    for name, arguments in looped.items():
        if f"{name}-unshared" in looped:
            raise UserError(
                f"recipes: {name}-unshared is the control of {name}: choose another name"
            )
        cell |= {name: arguments, f"{name}-unshared": arguments | {"shared": False}}
    return cell


def _resolved(arguments: dict[str, Any], recurrences: int) -> dict[str, Any]:
    if arguments.get("truncation_depth") != HALF:
        return dict(arguments)
    return arguments | {"truncation_depth": math.ceil(recurrences / 2)}


def _injected(grid: Grid, base: Base) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, arguments in grid.recipes.items():
        wiring = _wiring(base.model | arguments)
        if wiring and wiring not in found.values():
            found[f"{name}-injected"] = wiring
    if not found:
        raise UserError("controls: injected: no recipe has an injection or streams to inject by")
    return found


def _wiring(model: dict[str, Any]) -> dict[str, Any]:
    """What enters each pass of a looped model; empty for injection none."""
    if model.get("streams", 1) != 1:
        return {"streams": model["streams"]}
    injection = model.get("injection") or "linear"  # null is linear when there is a loop
    return {} if injection == "none" else {"injection": injection}
