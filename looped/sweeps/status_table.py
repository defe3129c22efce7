"""How far a sweep is: one line per cell, the runs of one recipe, horizon and recurrence count."""

from collections import Counter
from collections.abc import Sequence

from looped.sweeps.plan import PlannedRun
from looped.sweeps.status import STATUSES, RunStatus, record_of
from looped.sweeps.tables import aligned


def spent_flops(run: PlannedRun) -> int:
    """Training FLOPs that a run has executed so far, as its record counts them."""
    record = record_of(run.directory)
    return 0 if record is None else int(record.flops.get("train") or 0)


def status_table(
    runs: Sequence[PlannedRun], *, statuses: Sequence[RunStatus], spent: Sequence[int]
) -> list[str]:
    """A header, one line per cell, and the total.

    Args:
        runs: of the sweep.
        statuses: where each stands.
        spent: training FLOPs that each has executed.
    """
    cells: dict[tuple[str, float, int], list[int]] = {}
    for place, run in enumerate(runs):
        key = (run.recipe, run.horizon[1], run.architecture.recurrences)
        cells.setdefault(key, []).append(place)
    unit = "FLOPs" if runs[0].horizon[0] == "budget_flops" else "tokens"
    rows: list[list[str]] = [["recipe", unit, "r", *STATUSES, "spent of planned FLOPs"]]
    for (recipe, horizon, r), places in [*cells.items(), (("all", 0.0, 0), [*range(len(runs))])]:
        counts = Counter(statuses[place] for place in places)
        planned = sum(runs[place].plan.train_flops for place in places)
        done = sum(spent[place] for place in places)
        rows.append(
            [
                recipe,
                f"{horizon:.3g}" if horizon else "",
                str(r) if r else "",
                *(str(counts[status] or "-") for status in STATUSES),
                f"{done:.2e} / {planned:.2e} {done / planned:>4.0%}",
            ]
        )
    return aligned(rows)
