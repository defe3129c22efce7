"""Which grid to train: candidate runs around the predicted optimum, chosen for the error of phi.

Candidates are every (budget, recurrence count, width) whose width lies within a factor of the
predicted best one, so that neither the law nor the training rule is stretched, and whose tokens the
data holds, since the law assumes fresh ones. The chosen ones come back as a grid YAML (widths of
each recurrence count).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import yaml

from looped.errors import UserError
from looped.scaling.exchange import Candidates, choose, next_run, phi_variance
from looped.scaling.expected_error import derivatives
from looped.scaling.prior import Prior
from looped.sweeps.base import Base
from looped.sweeps.cells import PLAIN_RECIPE
from looped.sweeps.doubts import best_width, epochs
from looped.sweeps.grid import Grid
from looped.sweeps.plan import PlannedRun, plan_runs
from looped.sweeps.points import points

WIDTH_FACTOR = 2.0
"""Candidates are up to this factor narrower and wider than the predicted best width; the paper's
own cells reach 1.7 times."""

BUDGET_LADDER = 10 ** (1 / 3)
"""Ratio of neighbouring candidate budgets: the paper's."""

NUM_BUDGETS = 8


@dataclass(frozen=True, kw_only=True)
class FurtherRun:
    """What one run more would buy.

    Attributes:
        run: it.
        phi_stderr: expected standard error of phi with it and the further runs before it.
    """

    run: PlannedRun
    phi_stderr: float


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A designed grid.

    Attributes:
        runs: the proposed ones.
        phi_stderr: their expected standard error of phi.
        further: the runs that would help most after them, one after another.
        num_candidates: how many runs there were to choose from.
    """

    runs: list[PlannedRun]
    phi_stderr: float
    further: list[FurtherRun]
    num_candidates: int

    @property
    def train_flops(self) -> int:
        """Training FLOPs of the proposed runs."""
        return sum(run.plan.train_flops for run in self.runs)


def design_grid(
    like: Grid,
    base: Base,
    *,
    budget: float,
    num_runs: int,
    prior: Prior,
    budgets: Sequence[float] | None = None,
    widths: Sequence[int] | None = None,
    train_rows: int | None = None,
    at_least: int = 2,
    further: int = 5,
) -> Proposal:
    """The runs that tell phi best for a total budget.

    Args:
        like: depth, heads, recurrence counts and first recipe are its; its sizes are not used.
        base: its base configuration.
        budget: training FLOPs of all runs together.
        num_runs: how many to propose.
        prior: law and noise to plan with.
        budgets: training FLOPs that a run may have; null = a ladder around the average.
        widths: that a run may have; null = multiples of the head dimension near the best.
        train_rows: rows of the data, of which no run may need more; null when it is not there.
        at_least: runs of each recurrence count: two points say nothing about a power law.
        further: how many further runs to look at.

    Raises:
        UserError: no candidates, too few, or too expensive.
    """
    offered = candidate_runs(
        like,
        base,
        budgets=budgets or _ladder(budget, num_runs),
        prior=prior,
        widths=widths,
        train_rows=train_rows,
    )
    if not offered:
        raise UserError(
            f"no run fits: --budget over --runs leaves {budget / num_runs:.3g} FLOPs a run, and "
            "every candidate has fewer optimizer steps than min_steps, needs another width or "
            "would see its data more than once; raise --budget, lower --runs, offer other "
            "--budgets and --widths, or prepare more text"
        )
    table = points(offered)
    candidates = Candidates(
        information=derivatives(table, prior) / prior.noise,
        cost=np.array([run.plan.train_flops for run in offered], dtype=float),
        group=table["recurrences"].to_numpy(),
    )
    chosen = choose(candidates, num_runs, budget=budget, at_least=at_least)
    more: list[FurtherRun] = []
    taken = list(chosen)
    for _ in range(further):
        following = next_run(candidates, taken, largest_cost=budget / num_runs)
        if following is None:
            break
        taken.append(following)
        stderr = phi_variance(candidates, taken) ** 0.5
        more.append(FurtherRun(run=offered[following], phi_stderr=stderr))
    return Proposal(
        runs=[offered[place] for place in chosen],
        phi_stderr=phi_variance(candidates, chosen) ** 0.5,
        further=more,
        num_candidates=len(offered),
    )


def candidate_runs(
    like: Grid,
    base: Base,
    *,
    budgets: Sequence[float],
    prior: Prior,
    widths: Sequence[int] | None = None,
    train_rows: int | None = None,
) -> list[PlannedRun]:
    """Every possible run of one seed, of the first recipe that the grid names.

    Args:
        like: as of `design_grid`.
        base: likewise.
        budgets: training FLOPs that a run may have.
        prior: predicts the best width of each budget and recurrence count.
        widths: that a run may have, near the best or not; null as of `design_grid`.
        train_rows: as of `design_grid`.
    """
    recipe = next(iter(like.recipes))
    one = replace(
        like, tokens={}, seeds=like.seeds[:1], recipes={recipe: like.recipes[recipe]}, min_steps=1
    )
    runs = []
    for budget in budgets:
        for r in like.recurrences:
            cell = replace(one, recurrences=(r,))
            own = widths or _near_the_best(cell, base, budget=budget, prior=prior)
            for width in own:
                try:
                    runs += plan_runs(replace(cell, budgets={budget: (width,)}), base)
                except UserError:  # below one step: no candidate
                    continue
    return [
        run
        for run in runs
        if run.plan.steps >= like.min_steps and (epochs(run, train_rows) or 0.0) <= 1
    ]


def as_yaml(proposal: Proposal, like: Grid) -> str:
    """The proposed runs as the text of a grid YAML."""
    sizes: dict[float, dict[int, list[int]]] = {}
    for run in proposal.runs:
        of_budget = sizes.setdefault(run.horizon[1], {})
        of_budget.setdefault(run.architecture.recurrences, []).append(run.architecture.width)
    recipe = next(iter(like.recipes))
    head_dim = proposal.runs[0].architecture.head_dim
    content = {
        "base": str(like.base),
        "out": f"{like.out}-designed",
        "effective_depth": like.effective_depth,
        "prelude_layers": like.prelude_layers,
        "coda_layers": like.coda_layers,
        "head_dim": head_dim,
        "recurrences": sorted({run.architecture.recurrences for run in proposal.runs}),
    }
    if recipe != PLAIN_RECIPE or like.recipes[recipe]:
        content["recipes"] = {recipe: like.recipes[recipe]}
    lines = [yaml.safe_dump(content, sort_keys=False).rstrip(), "budgets:"]
    for budget in sorted(sizes):
        own = {r: sorted(sizes[budget][r]) for r in sorted(sizes[budget])}
        lines.append(f"  {budget:.6g}: {own}")
    return "\n".join(lines) + "\n"


def _near_the_best(cell: Grid, base: Base, *, budget: float, prior: Prior) -> list[int]:
    """Widths of whole heads within `WIDTH_FACTOR` of the predicted best one."""
    head_dim = cell.head_dim or base.head_dim
    if head_dim is None:
        raise UserError(f"neither the grid nor {cell.base} says the width of a head: give head_dim")
    (run,) = plan_runs(replace(cell, budgets={1e300: (head_dim,)}), base)
    best = best_width(run.architecture, convention=base.convention, budget=budget, law=prior.law)
    heads = np.arange(1, int(best * WIDTH_FACTOR / head_dim) + 1)
    return [int(n) * head_dim for n in heads if n * head_dim >= best / WIDTH_FACTOR]


def _ladder(budget: float, num_runs: int) -> list[float]:
    """Candidate budgets down from five times the average of a run, of three digits."""
    top = 5 * budget / num_runs
    rungs = [top / BUDGET_LADDER**step for step in range(NUM_BUDGETS)]
    return [float(f"{rung:.3g}") for rung in reversed(rungs)]
