"""Levels: the budget, or the token count, that the runs of a cell share.

A level is text, such as `1e+18 FLOPs` or `2.5e+05 tokens`, so that runs can be grouped by it.
"""

import numpy as np
import pandas as pd

TOKENS = " tokens"
"""How the level of a grid of equal token counts ends."""

SAME_LEVEL = 0.02
"""Budgets (or token counts) closer than this, relatively, are one level."""


def is_budget(level: str) -> bool:
    """Whether the runs of a level share their training FLOPs, not their token count."""
    return not level.endswith(TOKENS)


def level_order(level: str) -> float:
    """The number in a level's text, to sort levels by; 0 for one in words."""
    try:
        return float(level.split()[0])
    except ValueError:
        return 0.0


def number_of_levels(values: pd.Series) -> int:
    """How many there are among token counts, budgets or sizes, nearly equal ones taken as one."""
    ordered = np.sort(np.log(values.to_numpy(dtype=float)))
    return 1 + int((np.diff(ordered) > SAME_LEVEL).sum())


def levels_of(table: pd.DataFrame) -> tuple[pd.Series, list[str]]:
    """The budget or the token count that runs share, whichever takes fewer values in this pool.

    A grid of equal budgets has tokens of its own in every run; in a grid of equal token counts it
    is the budgets that differ. Runs of unknown budget never decide how the others are grouped: in
    a grid of budgets they form levels of their own, and a warning counts them.
    """
    tokens = _group(table["tokens"])
    spent = _positive(table["budget_flops"]).fillna(
        _positive(table["tokens"] * table["flops_per_token"])
    )
    known = spent.notna()
    budgets = _group(spent[known])
    if tokens[known].nunique() < budgets.nunique() or not known.any():
        return tokens.map(f"{{:.3g}}{TOKENS}".format), []
    levels = budgets.map("{:.3g} FLOPs".format)
    if known.all():
        return levels, []
    odd = _group(table.loc[~known, "tokens"]).map(f"{{:.3g}}{TOKENS}".format)
    warning = (
        f"the budget of {len(odd)} of {len(table)} runs is not known: they share no cell "
        "with the others, as if trained at a budget of their own; give budget_flops"
    )
    return pd.concat([levels, odd]).reindex(table.index), [warning]


def at_common_levels(first: pd.DataFrame, second: pd.DataFrame) -> list[pd.DataFrame]:
    """The runs of two recipes at the levels at which both have looped ones; maybe none.

    Args:
        first: runs of one recipe, with `level` and `recurrences`.
        second: those of the other.
    """
    tables = (first, second)
    looped = [set(table.loc[table["recurrences"] > 1, "level"]) for table in tables]
    return [table[table["level"].isin(looped[0] & looped[1])] for table in tables]


def _positive(values: pd.Series) -> pd.Series:
    """Numbers as they are; null for what is none, not finite or not above 0."""
    numbers = pd.to_numeric(values, errors="coerce").astype(float)
    return numbers.where((numbers > 0) & np.isfinite(numbers))


def _group(values: pd.Series) -> pd.Series:
    """Replace values within 2 % of their neighbours by the median of the group."""
    ordered = values.astype(float).sort_values()
    group = (ordered.apply(np.log).diff() > SAME_LEVEL).cumsum()
    return ordered.groupby(group).transform("median").reindex(values.index)
