"""How often each interval holds the truth: data simulated from the fitted law on the same design.

Two worlds. In one the noise of every run is its own; in the other the runs of a cell share part of
it, as runs that share a schedule and a learning rate would. The total is the same in both. An
interval deserves the name 95 % if it covers about that often in both, since nobody knows in which
one lives.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from looped.errors import UserError
from looped.scaling.fit import FitResult
from looped.scaling.fitted import Fitted
from looped.scaling.intervals import KINDS, intervals_of
from looped.scaling.law import Floats

CELL_PART, OWN_PART = 0.8, 0.6
"""Shares of the noise in the correlated world; their squares add up to one."""


@dataclass(frozen=True, kw_only=True)
class World:
    """A kind of noise, in nats.

    Attributes:
        name: what it is called.
        cell_sd: standard deviation of what the runs of a cell share.
        own_sd: standard deviation of what each run has for itself.
    """

    name: str
    cell_sd: float
    own_sd: float

    def draw(self, fitted: Fitted, generator: np.random.Generator) -> Floats:
        """Logarithms of the losses of one simulated data set; shape (n,)."""
        truth = np.exp(fitted.design.log_prediction(fitted.theta))
        shared = generator.normal(0, self.cell_sd, fitted.num_cells)[fitted.cells]
        own = generator.normal(0, self.own_sd, len(truth))
        return np.asarray(np.log(truth + shared + own))


def worlds(noise: float) -> tuple[World, World]:
    """Independent noise of `noise` nats, and the same amount partly shared within cells."""
    return (
        World(name="independent", cell_sd=0.0, own_sd=noise),
        World(name="cell-correlated", cell_sd=CELL_PART * noise, own_sd=OWN_PART * noise),
    )


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """How one interval fared in one world.

    Attributes:
        world: name of the world.
        kind: name of the interval.
        covered: share of the data sets whose interval held the true phi; one without an interval
            counts as not covered.
        standard_error: of that share.
        mean_width: of the intervals that had both ends; null when none had.
        none: data sets without an interval.
        data_sets: how many were simulated.
    """

    world: str
    kind: str
    covered: float
    standard_error: float
    mean_width: float | None
    none: int
    data_sets: int


def measure_coverage(
    fit: FitResult,
    *,
    data_sets: int,
    noise: float | None = None,
    kinds: Sequence[str] = KINDS,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Coverage]:
    """Simulate, fit, and count.

    Args:
        fit: whose law is the truth and whose runs are the design.
        data_sets: simulated in each world.
        noise: standard deviation of the loss in nats; null = the fit's own residual.
        kinds: of intervals.
        level: their nominal coverage.
        resamples: refits of each bootstrap.
        seed: of everything drawn.
        progress: called with the data sets done and to do.

    Returns:
        One entry per world and kind.

    Raises:
        UserError: fewer than one data set, or a fit without phi.
    """
    if data_sets < 1:
        raise UserError(f"coverage over {data_sets} data sets: 400 or more tell something")
    if fit.phi is None or "phi" in fit.held:
        raise UserError("coverage needs a fit that tells phi")
    assert fit.rmse is not None
    truth = Fitted.of(fit)
    spread = fit.rmse if noise is None else noise
    results = []
    for number, world in enumerate(worlds(spread)):
        hits: dict[str, list[bool]] = {kind: [] for kind in kinds}
        widths: dict[str, list[float]] = {kind: [] for kind in kinds}
        for i in range(data_sets):
            generator = np.random.default_rng([seed, number, i])
            simulated = truth.with_losses(world.draw(truth, generator))
            found = intervals_of(
                simulated, kinds, level=level, resamples=resamples, seed=seed + i
            ).intervals
            for kind in kinds:
                low, high = found[kind].low, found[kind].high
                if low is None or high is None:
                    hits[kind].append(False)
                else:
                    hits[kind].append(low <= truth.phi <= high)
                    widths[kind].append(high - low)
            progress(number * data_sets + i + 1, 2 * data_sets)
        results += [_summary(world.name, kind, hits[kind], widths[kind]) for kind in kinds]
    return results


def _summary(world: str, kind: str, hits: list[bool], widths: list[float]) -> Coverage:
    covered = float(np.mean(hits))
    return Coverage(
        world=world,
        kind=kind,
        covered=covered,
        standard_error=float(np.sqrt(covered * (1 - covered) / len(hits))),
        mean_width=float(np.mean(widths)) if widths else None,
        none=len(hits) - len(widths),
        data_sets=len(hits),
    )
