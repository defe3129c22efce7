"""What is possible in a plan but probably not meant: repeated data, widths beside the optimum."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from looped.architecture import Architecture, Convention
from looped.scaling.law import Law
from looped.scaling.prior import Prior
from looped.sweeps.plan import PlannedRun

FAR_BEYOND = 10.0
"""How many times fewer or more tokens than the law's own runs had are too far from them."""

SLACK = 1.1
"""How far, as a factor, the predicted best width may lie outside: law and parabolas differ so."""


def doubts(
    runs: Sequence[PlannedRun],
    prior: Prior,
    *,
    train_rows: int | None,
    beside: Sequence[PlannedRun] = (),
) -> list[str]:
    """One line for each doubtful entry; empty when there is none.

    Args:
        runs: of the grid.
        prior: the law that predicts the best width of each budget and recurrence count.
        train_rows: rows of the data; null when it is not there.
        beside: runs of other grids, which share cells with these.
    """
    lines = []
    if runs and runs[0].base.guessed_devices:
        lines.append(
            f"{runs[0].base.path} leaves trainer.devices to Lightning: tokens per step and steps "
            "are planned for one device, so name the number"
        )
    repeated = [(run, epochs(run, train_rows)) for run in runs]
    repeated = [(run, passes) for run, passes in repeated if passes is not None and passes > 1]
    if repeated:
        run, most = max(repeated, key=lambda pair: pair[1] or 0.0)
        lines.append(
            f"{len(repeated)} of {len(runs)} runs see their data more than once, {run.name} "
            f"{most:.3g} times: the law assumes fresh tokens, so prepare more text"
        )
    half_trained = [run for run in runs if run.control == "unshared" and _truncated(run)]
    if half_trained:
        lines.append(
            f"{half_trained[0].name} and {len(half_trained) - 1} more: truncation leaves the "
            "blocks of the first r - k passes at their initial values, where nothing is shared"
        )
    return lines + beyond_the_law(runs, prior) + _beside_the_optimum(runs, prior, beside)


def _truncated(run: PlannedRun) -> bool:
    return run.architecture.gradient_passes < run.architecture.recurrences


def epochs(run: PlannedRun, train_rows: int | None) -> float | None:
    """Passes over the data; null when the number of its rows is not known."""
    if not train_rows:
        return None
    return run.plan.tokens / (train_rows * run.architecture.seq_len)


def best_width(
    architecture: Architecture, *, convention: Convention, budget: float, law: Law
) -> float:
    """The width at which a budget buys the lowest predicted loss; not rounded.

    Args:
        architecture: any of the cell; only its width, and with it the number of its heads, varies.
        convention: how FLOPs are counted.
        budget: training FLOPs.
        law: predicts the loss.

    Returns:
        The vertex of the parabola through the best width and its neighbours on a fine ladder of
        log width; an end of the ladder (one head, or 512 of them) when the loss falls towards it.
    """
    heads = np.unique(np.geomspace(1, 512, 240).astype(int)) * (architecture.num_kv_heads or 1)
    widths = heads * architecture.head_dim
    losses = []
    for width, num_heads in zip(widths.tolist(), heads.tolist(), strict=True):
        of_width = replace(architecture, width=width, num_heads=num_heads)
        groups = of_width.parameter_groups()
        losses.append(
            law.loss(
                of_width.recurrences,
                groups.n_once,
                n_rec=groups.n_rec,
                tokens=budget / of_width.flops_per_token(convention),
            )
        )
    place = int(np.argmin(losses))
    if place in (0, len(widths) - 1):
        return float(widths[place])
    near = slice(place - 1, place + 2)
    c2, c1, _ = np.polyfit(np.log(widths[near]), np.array(losses[near], dtype=float), 2)
    return float(np.exp(-c1 / (2 * c2)))


def beyond_the_law(runs: Sequence[PlannedRun], prior: Prior) -> list[str]:
    """A line when the runs lie far from those that the law was fitted to, else none."""
    if prior.tokens is None or not runs:
        return []
    least, most = prior.tokens
    tokens = [run.plan.tokens for run in runs]
    if min(tokens) >= least / FAR_BEYOND and max(tokens) <= most * FAR_BEYOND:
        return []
    return [
        f"{prior.source} was seen from {least:.2g} to {most:.2g} tokens, these runs see "
        f"{min(tokens):.2g} to {max(tokens):.2g}: the expected error is a guess; give --law a fit "
        "of runs like these"
    ]


def _beside_the_optimum(
    runs: Sequence[PlannedRun], prior: Prior, beside: Sequence[PlannedRun]
) -> list[str]:
    cells: dict[tuple[str, float, int], list[PlannedRun]] = {}
    for run in runs:
        # At a given number of tokens wider is always better; a control has the widths of its cell.
        if run.horizon[0] == "budget_flops" and run.control is None:
            cells.setdefault(_cell(run), []).append(run)
    for run in beside:
        if _cell(run) in cells:
            cells[_cell(run)].append(run)
    off: dict[str, list[str]] = {}
    for (recipe, budget, r), cell in cells.items():
        first = cell[0]
        best = best_width(
            first.architecture,
            convention=first.base.convention,
            budget=budget,
            law=prior.law,
        )
        widths = [run.architecture.width for run in cell]
        if best < min(widths) / SLACK or best > max(widths) * SLACK:
            side = "above" if best < min(widths) else "below"
            off.setdefault(side, []).append(
                f"{recipe}, budget {budget:.3g}, r = {r}: widths {min(widths)} to {max(widths)} do "
                f"not bracket {best:.0f}, the best one by {prior.source}"
            )
    return [
        f"{examples[0]}; in {len(examples)} of {len(cells)} cells all widths lie {side} the best"
        for side, examples in off.items()
    ]


def _cell(run: PlannedRun) -> tuple[str, float, int]:
    return run.recipe, run.horizon[1], run.architecture.recurrences
