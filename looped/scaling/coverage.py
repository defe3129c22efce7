"""How often each interval holds the truth: data simulated from the fitted law on the same design.

Two worlds. In one the noise of every run is its own; in the other the runs of a cell share part of
it, as runs that share a schedule and a learning rate would. The total is the same in both. An
interval deserves the name 95 % if it covers about that often in both, since nobody knows in which
one lives.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np

from looped.errors import UserError
from looped.scaling.fit import FitResult
from looped.scaling.fitted import Fitted
from looped.scaling.intervals import KINDS, check_resampling, intervals_of
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


NOISE_RANGE = (1e-6, 0.5)
"""Nats; with more a simulated loss may well be negative."""

MAX_WORKERS = 1024


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


@dataclass(frozen=True, kw_only=True)
class _Task:
    """One simulated data set: what a worker process needs."""

    truth: Fitted
    world: World
    kinds: tuple[str, ...]
    level: float
    resamples: int
    seeds: tuple[int, int, int]

    def ends(self) -> list[tuple[float | None, float | None]]:
        """Both ends of each kind of interval."""
        generator = np.random.default_rng(self.seeds)
        simulated = self.truth.with_losses(self.world.draw(self.truth, generator))
        found = intervals_of(
            simulated,
            self.kinds,
            level=self.level,
            resamples=self.resamples,
            seed=int(generator.integers(2**31)),
        ).intervals
        return [(found[kind].low, found[kind].high) for kind in self.kinds]


def check_study(data_sets: int, *, noise: float | None, workers: int) -> None:
    """Refuse a study that cannot be made.

    Raises:
        UserError: fewer than one data set or worker, or noise beyond reason.
    """
    if data_sets < 1:
        raise UserError(f"coverage over {data_sets} data sets: 400 or more tell something")
    if not 1 <= workers <= MAX_WORKERS:
        raise UserError(f"workers {workers} is not between 1 and {MAX_WORKERS}")
    low, high = NOISE_RANGE
    if noise is not None and not low <= noise <= high:
        raise UserError(
            f"noise {noise:g} is not between {low:g} and {high:g}: give nats, such as 0.010"
        )


def measure_coverage(
    fit: FitResult,
    *,
    data_sets: int,
    noise: float | None = None,
    kinds: Sequence[str] = KINDS,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    workers: int = 1,
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
        seed: of everything drawn; the result does not depend on the number of workers.
        workers: processes that share the work.
        progress: called with the data sets done and to do.

    Returns:
        One entry per world and kind.

    Raises:
        UserError: fewer than one data set or worker, noise that is not positive, or a fit without
            phi.
    """
    check_study(data_sets, noise=noise, workers=workers)
    check_resampling(level, resamples=resamples, seed=seed)
    if fit.phi is None or "phi" in fit.held:
        raise UserError("coverage needs a fit that tells phi")
    assert fit.rmse is not None
    truth = Fitted.of(fit)
    two_worlds = worlds(fit.rmse if noise is None else noise)
    tasks = [
        _Task(
            truth=truth,
            world=world,
            kinds=tuple(kinds),
            level=level,
            resamples=resamples,
            seeds=(seed, number, i),
        )
        for number, world in enumerate(two_worlds)
        for i in range(data_sets)
    ]
    outcomes = []
    for ends in _run(tasks, workers):
        outcomes.append(ends)
        progress(len(outcomes), len(tasks))
    results = []
    for number, world in enumerate(two_worlds):
        mine = outcomes[number * data_sets : (number + 1) * data_sets]
        for k, kind in enumerate(kinds):
            results.append(_summary(world, kind, [ends[k] for ends in mine], truth.phi))
    return results


def _run(tasks: list[_Task], workers: int) -> Iterator[list[tuple[float | None, float | None]]]:
    if workers == 1:
        yield from map(_Task.ends, tasks)
        return
    # Spawned, not forked: the progress bar is a thread, and a forked threaded process may hang.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_Task.ends, tasks, chunksize=4)


def _summary(
    world: World, kind: str, ends: list[tuple[float | None, float | None]], truth: float
) -> Coverage:
    known = [(low, high) for low, high in ends if low is not None and high is not None]
    covered = sum(low <= truth <= high for low, high in known) / len(ends)
    return Coverage(
        world=world.name,
        kind=kind,
        covered=covered,
        standard_error=math.sqrt(covered * (1 - covered) / len(ends)),
        mean_width=float(np.mean([high - low for low, high in known])) if known else None,
        none=len(ends) - len(known),
        data_sets=len(ends),
    )
