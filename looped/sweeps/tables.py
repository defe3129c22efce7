"""Columns of text: the runs of a plan."""

from collections.abc import Sequence

from looped.quantities import duration, short
from looped.sweeps.doubts import epochs
from looped.sweeps.plan import PlannedRun

HEADER = (
    *("recipe", "r", "width", "seed", "N_once", "N_rec", "FLOPs/token", "steps", "tokens"),
    *("tokens/N", "epochs", "time", "FLOPs", "status"),
)
SEED = HEADER.index("seed")


def plan_table(
    runs: Sequence[PlannedRun],
    *,
    statuses: Sequence[str],
    seconds: Sequence[float | None],
    train_rows: int | None,
) -> list[str]:
    """One line per run under a header; `-` where a number is not known; seeds if there are several.

    Args:
        runs: in the order to show.
        statuses: where each stands.
        seconds: estimated training time of each.
        train_rows: rows of the data; null when it is not there.
    """
    rows: list[Sequence[str]] = [HEADER]
    for run, status, time_s in zip(runs, statuses, seconds, strict=True):
        groups = run.architecture.parameter_groups()
        passes = epochs(run, train_rows)
        rows.append(
            (
                run.recipe,
                str(run.architecture.recurrences),
                str(run.architecture.width),
                str(run.seed),
                short(groups.n_once),
                short(groups.n_rec),
                short(run.plan.flops_per_token),
                f"{run.plan.steps:,}",
                short(run.plan.tokens),
                f"{run.plan.tokens / (groups.n_once + groups.n_rec):.1f}",
                "-" if passes is None else f"{passes:.2f}",
                "-" if time_s is None else duration(time_s),
                f"{run.plan.train_flops:.3g}",
                status,
            )
        )
    if len({run.seed for run in runs}) == 1:
        rows = [(*row[:SEED], *row[SEED + 1 :]) for row in rows]
    return aligned(rows)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
