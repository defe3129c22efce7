"""Columns of text: the runs of a plan, and numbers as a person reads them."""

from collections.abc import Sequence

from looped.sweeps.doubts import epochs
from looped.sweeps.plan import PlannedRun

HEADER = (
    *("recipe", "r", "width", "seed", "N_once", "N_rec", "FLOPs/token", "steps", "tokens"),
    *("tokens/N", "epochs", "time", "FLOPs", "status"),
)
SEED = HEADER.index("seed")
SUFFIXES = ("", "k", "M", "G", "T")


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


def short(number: float) -> str:
    """28323840 as 28.3M: three digits and a suffix."""
    for suffix in SUFFIXES[:-1]:
        if number < 999.5:
            return f"{number:.3g}{suffix}"
        number /= 1000
    return f"{number:.3g}{SUFFIXES[-1]}"


def duration(seconds: float) -> str:
    """Seconds as 45 s, 2.5 min, 3.4 h or 2.1 d."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    if seconds < 99.5 * 60:
        return f"{seconds / 60:.{1 if seconds < 599 else 0}f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 99.5 * 3600 else f"{seconds / 86400:.1f} d"
