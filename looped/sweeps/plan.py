"""From a grid to its runs: one architecture, one horizon and one `looped fit` line each."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from looped.architecture import Architecture
from looped.controls import control_of
from looped.errors import UserError
from looped.model_arguments import architecture_of
from looped.sweeps.base import Base, read_base
from looped.sweeps.cells import recipes_of_cell
from looped.sweeps.grid import Grid
from looped.training_plan import TrainingPlan, plan_training

HORIZONS = ("budget_flops", "tokens", "steps", "tokens_per_parameter")


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One run of a sweep.

    Attributes:
        name: of the run and of its directory, unique in the sweep.
        directory: where it goes.
        recipe: the name under which it is fitted.
        architecture: what it trains.
        horizon: name and value of its horizon.
        plan: its steps, tokens and FLOPs.
        seed: of weights and data order.
        model: the `model` arguments that differ from the base configuration.
        base: the shared configuration.
    """

    name: str
    directory: Path
    recipe: str
    architecture: Architecture
    horizon: tuple[str, float]
    plan: TrainingPlan
    seed: int
    model: dict[str, Any]
    base: Base

    @property
    def control(self) -> str | None:
        """Which control the run is; null for a looped or a plain one."""
        return control_of(self.architecture.as_record())

    @property
    def fit_arguments(self) -> list[str]:
        """The arguments of `looped fit` that train this run from its beginning."""
        given = {"config": str(self.base.path), "run.dir": str(self.directory)} | self.settings
        return [f"--{name}={'null' if value is None else value}" for name, value in given.items()]

    @property
    def settings(self) -> dict[str, Any]:
        """What makes this run another one than its base configuration, by dotted name."""
        horizon = dict.fromkeys(HORIZONS, "null")
        horizon[self.horizon[0]] = f"{self.horizon[1]:.17g}"
        given: dict[str, Any] = {
            "seed_everything": self.seed,
            "data.seed": self.seed,
            "run.recipe": self.recipe,
        }
        given |= {f"horizon.{name}": value for name, value in horizon.items()}
        return given | {f"model.{name}": value for name, value in self.model.items()}


def plan_sweep(grid: Grid) -> list[PlannedRun]:
    """The runs of a grid in the order in which they are worth running.

    Small horizons first, within one all recurrence counts and recipes of a width side by side, so
    that a partial sweep already spans the design.

    Raises:
        UserError: the base configuration is unreadable, or a run is impossible; the message names
            the run.
    """
    return plan_runs(grid, read_base(grid.base))


def plan_runs(grid: Grid, base: Base) -> list[PlannedRun]:
    """As `plan_sweep`, with the base configuration at hand."""
    recipes = {r: recipes_of_cell(grid, base, r) for r in grid.recurrences}
    runs = [
        _planned_run(grid, base, horizon=horizon, seed=seed, width=width, r=r, recipe=recipe)
        for horizon in sorted(grid.horizons[1])
        for seed in grid.seeds
        for width, recurrences in grid.recurrences_by_width(horizon).items()
        for r in recurrences
        for recipe in recipes[r].items()
    ]
    named: dict[str, PlannedRun] = {}
    for run in runs:
        before = named.setdefault(run.name, run)
        if before is not run:
            raise UserError(
                f"{grid.horizons[0]} {before.horizon[1]:.17g} and {run.horizon[1]:.17g} are both "
                f"{_short(run.horizon[1])} in the names of runs: keep one of the two"
            )
    return runs


def _planned_run(
    grid: Grid,
    base: Base,
    *,
    horizon: float,
    seed: int,
    width: int,
    r: int,
    recipe: tuple[str, dict[str, Any]],
) -> PlannedRun:
    horizon_name = grid.horizons[0]
    label = "C" if horizon_name == "budget_flops" else "D"
    recipe_name, special = recipe
    name = f"{recipe_name}-r{r}-d{width}-{label}{_short(horizon)}-s{seed}"
    try:
        model = _layout(grid, base, recurrences=r, width=width) | special
        architecture = architecture_of(base.model | model)
        plan = _training_plan(grid, base, architecture=architecture, horizon=horizon)
    except UserError as error:
        raise UserError(f"run {name}: {error}") from error
    return PlannedRun(
        name=name,
        directory=grid.out / name,
        recipe=recipe_name,
        architecture=architecture,
        horizon=(horizon_name, horizon),
        plan=plan,
        seed=seed,
        model=model,
        base=base,
    )


def _layout(grid: Grid, base: Base, *, recurrences: int, width: int) -> dict[str, Any]:
    looping = grid.effective_depth - grid.prelude_layers - grid.coda_layers
    if looping < recurrences or looping % recurrences:
        raise UserError(
            f"{grid.effective_depth} - {grid.prelude_layers} - {grid.coda_layers} = "
            f"{looping} looping layers do not divide into {recurrences} recurrences: change "
            "effective_depth or leave this recurrence count out"
        )
    head_dim = base.head_dim if grid.head_dim is None else grid.head_dim
    if head_dim is None:
        raise UserError(f"neither the grid nor {grid.base} says the width of a head: give head_dim")
    if head_dim < 1 or width % head_dim:
        raise UserError(
            f"width {width} is not divisible by head_dim {head_dim}: choose a multiple of it"
        )
    return {
        "width": width,
        "num_heads": width // head_dim,
        "prelude_layers": grid.prelude_layers,
        "recurrent_layers": looping // recurrences,
        "coda_layers": grid.coda_layers,
        "recurrences": recurrences,
    }


def _training_plan(
    grid: Grid, base: Base, *, architecture: Architecture, horizon: float
) -> TrainingPlan:
    groups = architecture.parameter_groups()
    plan = plan_training(
        flops_per_token=architecture.flops_per_token(base.convention),
        tokens_per_step=base.tokens_per_step(architecture),
        non_embedding=groups.n_once + groups.n_rec,
        **{grid.horizons[0]: horizon},
    )
    if plan.steps < grid.min_steps:
        raise UserError(
            f"{plan.steps} optimizer steps of {plan.tokens_per_step:,} tokens are fewer than "
            f"{grid.min_steps}: raise its {grid.horizons[0]}, take a smaller batch, or lower "
            "min_steps"
        )
    return plan


def _short(value: float) -> str:
    """1e12 and 300000 as 1e12 and 3e5: short, and the same for the same number."""
    mantissa, exponent = f"{value:e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
