"""What looped runs are measured against: plain runs, or a control in place of r = 1.

Taken for looped or plain runs, controls (`looped/controls.py`) would move phi by exactly what they
are meant to separate: they are fitted only when asked for. For the law an unshared run is one pass
of unique blocks: N_rec counts every copy, and r = 1.
"""

from typing import Literal, get_args

import pandas as pd

from looped.controls import CONTROLS
from looped.errors import UserError
from looped.scaling.exclusion import Exclusion

Reference = Literal["plain", "unshared", "injected"]
REFERENCES: tuple[Reference, ...] = get_args(Reference)

WHAT = {
    "unshared": "unshared blocks",
    "injected": "wiring without a loop",
}


def choose_reference(
    table: pd.DataFrame, reference: Reference
) -> tuple[pd.DataFrame, list[Exclusion]]:
    """Keep the looped runs and those of r = 1 that they are measured against.

    Args:
        table: with the columns `run`, `recurrences` and `control`, null for no control.
        reference: plain runs, or a control in their place.

    Raises:
        UserError: an unknown reference, or none of its runs is there.
    """
    if reference not in REFERENCES:
        raise UserError(f"reference {reference!r} is unknown: choose {', '.join(REFERENCES)}")
    control = table["control"]
    if reference == "plain":
        kept = control.isna()
    else:
        kept = (control == reference) | (control.isna() & (table["recurrences"] > 1))
        if not (control == reference).any():
            raise UserError(
                f"no run to take for the reference {reference}: none of them has "
                f"{WHAT[reference]} (docs/beyond-phi.md says how to train some)"
            )
    excluded = [
        Exclusion(row["run"], _why_left_out(row["control"], reference))
        for _, row in table[~kept].iterrows()
    ]
    return table[kept], excluded


def control_recipes(recipe: str) -> list[str]:
    """The names under which a sweep runs the controls of a recipe."""
    return [f"{recipe}-{control}" for control in CONTROLS]


def _why_left_out(control: str | float | None, reference: Reference) -> str:
    if isinstance(control, str):
        return f"a control ({WHAT[control]}): fitted only with --reference {control}"
    return f"r = 1: the reference are the {reference} runs"
