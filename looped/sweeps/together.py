"""Grids that are planned and launched as one: their runs share the workers, each is trained once.

Second seeds or controls of a measurement are grids of their own in its directory. Launched together
with it no worker idles at the end of one grid while the next one waits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from looped.errors import UserError
from looped.sweeps.base import Base
from looped.sweeps.grid import Grid, read_grid
from looped.sweeps.plan import PlannedRun, plan_sweep
from looped.sweeps.sweep_file import check_unchanged, difference_of, register, runs_beside


@dataclass(frozen=True, kw_only=True)
class Together:
    """Grids of one sweep directory and one base configuration.

    Attributes:
        grids: the grids by path, in the order given.
        runs_by_grid: what each plans.
        runs: all of them in that order, a run of several grids once.
    """

    grids: dict[Path, Grid]
    runs_by_grid: dict[Path, list[PlannedRun]]
    runs: list[PlannedRun]

    @property
    def out(self) -> Path:
        """Their sweep directory."""
        return next(iter(self.grids.values())).out

    @property
    def base(self) -> Base:
        """Their base configuration."""
        return self.runs[0].base

    @property
    def first_recipe(self) -> str:
        """The recipe that stands for all where one is asked for."""
        return next(name for grid in self.grids.values() for name in grid.recipes)

    def check_unchanged(self) -> None:
        """Refuse grids that would alter a run that has begun, without entering them.

        Raises:
            UserError: one would.
        """
        for path, runs in self.runs_by_grid.items():
            check_unchanged(path, runs, out=self.out)

    def register(self) -> None:
        """Enter the grids into their sweep directory.

        Raises:
            UserError: one would alter a run that has begun, or the directory cannot be written.
        """
        for path, runs in self.runs_by_grid.items():
            register(path, runs, out=self.out)

    def runs_beside(self) -> list[PlannedRun]:
        """What the sweep directory has beside these grids, each run once."""
        return runs_beside(self.grids, self.runs, out=self.out)


def read_together(paths: Sequence[Path]) -> Together:
    """Read and plan grids that are to be launched as one.

    Args:
        paths: one or more grid YAMLs.

    Raises:
        UserError: one of them is no grid, or they cannot be launched as one: another `out` or
            `base`, or a run of two grids that is not the same in both.
    """
    grids: dict[Path, Grid] = {}
    runs_by_grid: dict[Path, list[PlannedRun]] = {}
    planned: dict[str, tuple[Path, PlannedRun]] = {}
    for path in dict.fromkeys(paths):
        grids[path] = read_grid(path)
        runs_by_grid[path] = plan_sweep(grids[path])
        first = next(iter(grids))
        for name in ("out", "base"):
            here, there = (getattr(grids[one], name) for one in (path, first))
            if here.resolve() != there.resolve():
                raise UserError(
                    f"grids {first} and {path} have different {name}, {there} and {here}: launch "
                    "them one after the other"
                )
        for run in runs_by_grid[path]:
            other, before = planned.setdefault(run.name, (path, run))
            if difference := difference_of(before, run):
                raise UserError(
                    f"grids {other} and {path} plan different runs of the name {run.name}: "
                    f"{'; '.join(difference)}"
                )
    runs = [run for _, run in planned.values()]
    return Together(grids=grids, runs_by_grid=runs_by_grid, runs=runs)
