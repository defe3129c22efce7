"""From a grid to its runs: one architecture, one horizon and one `looped fit` line each."""

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from looped.architecture import Architecture
from looped.errors import UserError
from looped.sweeps.grid import HALF, Grid

ARCHITECTURE_ARGUMENTS = tuple(f.name for f in fields(Architecture))


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One run of a sweep.

    Attributes:
        name: of the run and of its directory, unique in the sweep.
        directory: where it goes.
        recipe: the name under which it is fitted.
        architecture: what it trains.
        horizon: name and value of its horizon.
        seed: of weights and data order.
        model: the `model` arguments that differ from the base configuration.
        base: the shared configuration.
    """

    name: str
    directory: Path
    recipe: str
    architecture: Architecture
    horizon: tuple[str, float]
    seed: int
    model: dict[str, Any]
    base: Path

    @property
    def fit_arguments(self) -> list[str]:
        """The arguments of `looped fit` that train this run from its beginning."""
        horizon = dict.fromkeys(("budget_flops", "tokens", "steps", "tokens_per_parameter"), "null")
        horizon[self.horizon[0]] = f"{self.horizon[1]:.17g}"
        given = {
            "config": self.base,
            "seed_everything": self.seed,
            "data.seed": self.seed,
            "run.dir": self.directory,
            "run.recipe": self.recipe,
        }
        given |= {f"horizon.{name}": value for name, value in horizon.items()}
        given |= {f"model.{name}": value for name, value in self.model.items()}
        return [f"--{name}={'null' if value is None else value}" for name, value in given.items()]


def plan_sweep(grid: Grid) -> list[PlannedRun]:
    """The runs of a grid in the order in which they are worth running.

    Small horizons first, within one all recurrence counts and recipes of a width side by side, so
    that a partial sweep already spans the design.

    Raises:
        UserError: the base configuration is unreadable, or a run is impossible; the message names
            the run.
    """
    base_model = _base_model(grid.base)
    horizon_name, horizons = grid.horizons
    runs = []
    for horizon in sorted(horizons):
        for seed in grid.seeds:
            for width in sorted(horizons[horizon]):
                for r in sorted(grid.recurrences):
                    for recipe in _recipes_for(grid, r):
                        label = "C" if horizon_name == "budget_flops" else "D"
                        name = f"{recipe}-r{r}-d{width}-{label}{_short(horizon)}-s{seed}"
                        model = _model_arguments(grid, name, recipe, r, width)
                        runs.append(
                            PlannedRun(
                                name=name,
                                directory=grid.out / name,
                                recipe=recipe,
                                architecture=_architecture(name, base_model | model),
                                horizon=(horizon_name, horizon),
                                seed=seed,
                                model=model,
                                base=grid.base,
                            )
                        )
    return runs


def _recipes_for(grid: Grid, recurrences: int) -> list[str]:
    """At r = 1 the recipes do not differ: one run serves all, under the first one's name."""
    names = list(grid.recipes)
    return names[:1] if recurrences == 1 else names


def _model_arguments(
    grid: Grid, name: str, recipe: str, recurrences: int, width: int
) -> dict[str, Any]:
    looping = grid.effective_depth - grid.prelude_layers - grid.coda_layers
    if recurrences < 1 or looping < recurrences or looping % recurrences:
        raise UserError(
            f"run {name}: {grid.effective_depth} - {grid.prelude_layers} - {grid.coda_layers} = "
            f"{looping} looping layers do not divide into {recurrences} recurrences: change "
            "effective_depth or leave this recurrence count out"
        )
    if grid.head_dim < 1 or width % grid.head_dim:
        raise UserError(
            f"run {name}: width {width} is not divisible by head_dim {grid.head_dim}: choose a "
            f"multiple of {grid.head_dim}"
        )
    special = {} if recurrences == 1 else dict(grid.recipes[recipe])
    if special.get("truncation_depth") == HALF:
        special["truncation_depth"] = math.ceil(recurrences / 2)
    return {
        "width": width,
        "num_heads": width // grid.head_dim,
        "prelude_layers": grid.prelude_layers,
        "recurrent_layers": looping // recurrences,
        "coda_layers": grid.coda_layers,
        "recurrences": recurrences,
    } | special


def _architecture(name: str, model: dict[str, Any]) -> Architecture:
    try:
        return Architecture(**{k: v for k, v in model.items() if k in ARCHITECTURE_ARGUMENTS})
    except (UserError, TypeError) as error:
        raise UserError(f"run {name}: {error}") from error


def _base_model(base: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(base.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"base {base}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"base {base}: not YAML: {' '.join(str(error).split())}") from error
    model = content.get("model") if isinstance(content, dict) else None
    if not isinstance(model, dict):
        raise UserError(f"base {base}: has no section `model`")
    return model


def _short(value: float) -> str:
    """1e12 and 300000 as 1e12 and 3e5: short, and the same for the same number."""
    mantissa, exponent = f"{value:e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
