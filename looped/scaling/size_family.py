"""Models of one recurrence count as a function of their size, read off the runs.

The law needs N_once, N_rec and D. What a run of another size would have of each is interpolated
between the sizes that were trained: the share of N_rec and log FLOPs per token over log N. So a
curve of the law at one budget can be drawn for runs of any origin, whose layout is not known; it
never leaves the sizes that were measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from looped.scaling.law import Floats, Law

DEFAULT_POINTS = 80


@dataclass(frozen=True, kw_only=True, eq=False)
class SizeFamily:
    """Sizes between the smallest and the largest run of one recurrence count, ascending.

    Attributes:
        recurrences: r.
        n_total: N = N_once + N_rec, evenly spaced in log N; shape (m,).
        n_once: N_once; shape (m,).
        n_rec: N_rec; shape (m,).
        flops_per_token: training FLOPs per token; shape (m,); null when no run tells them.
    """

    recurrences: int
    n_total: Floats
    n_once: Floats
    n_rec: Floats
    flops_per_token: Floats | None

    def loss_at_budget(self, law: Law, budget: float) -> Floats:
        """The law's loss of every size when `budget` FLOPs are spent on it; shape (m,)."""
        assert self.flops_per_token is not None
        tokens = budget / self.flops_per_token
        return law.loss(self.recurrences, self.n_once, n_rec=self.n_rec, tokens=tokens)

    def best_at_budget(self, law: Law, budget: float) -> tuple[float, float] | None:
        """Size and loss of the law's minimum at a budget; null when it lies at an end."""
        loss = self.loss_at_budget(law, budget)
        best = int(np.argmin(loss))
        if best in (0, len(loss) - 1):
            return None
        return float(self.n_total[best]), float(loss[best])


def size_families(runs: pd.DataFrame, *, points: int = DEFAULT_POINTS) -> dict[int, SizeFamily]:
    """One family for each recurrence count with at least two sizes, by r.

    Args:
        runs: a table with `recurrences, n_once, n_rec, tokens`; also used when there:
            `flops_per_token, budget_flops`.
        points: m, sizes of each family.
    """
    table = pd.DataFrame(
        {
            "recurrences": runs["recurrences"].astype(int),
            "n_total": (runs["n_once"] + runs["n_rec"]).astype(float),
            "share": runs["n_rec"] / (runs["n_once"] + runs["n_rec"]),
            "log_flops": np.log(flops_per_token(runs)),
        }
    )
    families = {}
    for r, group in table.groupby("recurrences"):
        sizes = group.groupby("n_total").median()  # runs of one size differ in seed or tokens only
        if len(sizes) >= 2:
            families[int(str(r))] = _family(int(str(r)), sizes, points=points)
    return families


def flops_per_token(runs: pd.DataFrame) -> pd.Series:
    """Training FLOPs per token of each run, as recorded or as budget / tokens; null if unknown."""
    known: Mapping[str, pd.Series] = {
        name: pd.to_numeric(runs[name], errors="coerce").where(lambda value: value > 0)
        if name in runs
        else pd.Series(np.nan, index=runs.index)
        for name in ("flops_per_token", "budget_flops")
    }
    return known["flops_per_token"].fillna(known["budget_flops"] / runs["tokens"]).astype(float)


def _family(recurrences: int, sizes: pd.DataFrame, *, points: int) -> SizeFamily:
    log_n = np.log(sizes.index.to_numpy(dtype=float))
    at = np.linspace(log_n[0], log_n[-1], points)
    share = np.interp(at, log_n, sizes["share"].to_numpy(dtype=float))
    log_flops = sizes["log_flops"].to_numpy(dtype=float)
    told = np.isfinite(log_flops)
    flops = np.exp(np.interp(at, log_n[told], log_flops[told])) if told.all() else None
    n_total = np.exp(at)
    return SizeFamily(
        recurrences=recurrences,
        n_total=n_total,
        n_once=(1 - share) * n_total,
        n_rec=share * n_total,
        flops_per_token=flops,
    )
