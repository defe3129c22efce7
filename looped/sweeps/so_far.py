"""What `looped phi` could already say of a sweep that is not finished."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from looped.quantities import counted
from looped.scaling.fit import FEW_STARTS, Estimator, fit_law
from looped.scaling.runs import read_runs


@dataclass(frozen=True, kw_only=True)
class SoFar:
    """The fit of one recipe's complete runs.

    Attributes:
        runs: complete runs that were fitted, with the shared r = 1 ones.
        phi: the exponent; null when these runs cannot tell it.
        stderr: its cluster-robust standard error; null when phi is, or with too few cells.
        faults: why phi cannot be told, in words; empty when it can.
    """

    runs: int
    phi: float | None
    stderr: float | None
    faults: tuple[str, ...]

    @property
    def in_words(self) -> str:
        """One line."""
        runs = counted(self.runs, "complete run")
        if self.phi is None:
            return f"not yet from {runs}: {'; '.join(self.faults)}"
        error = "" if self.stderr is None else f" (standard error {self.stderr:.2g})"
        return f"{self.phi:.3f}{error} from {runs}"


def phi_so_far(
    out: Path, *, estimator: Estimator = "huber", fix: Mapping[str, float] | None = None
) -> dict[str, SoFar]:
    """Fit each recipe of a sweep directory from a few starts.

    Args:
        out: the sweep directory.
        estimator: as of `fit_law`.
        fix: likewise.

    Raises:
        UserError: a parameter that cannot be held, no complete run, or runs that `looped phi`
            refuses.
    """
    pool = read_runs(out)
    found = {}
    for name in pool.recipes:
        table = pool.of_recipe(name)
        fit = fit_law(table, estimator=estimator, fix=fix, polish=FEW_STARTS)
        found[name] = SoFar(runs=len(table), phi=fit.phi, stderr=fit.stderr, faults=fit.faults)
    return found
