"""Controls: runs that isolate the price of sharing or of the wiring, kept apart from the loop.

unshared    a looped model in which every pass has blocks of its own: the same wiring, norms and
            compute, nothing shared. For the law it is one pass of unique blocks: N_rec counts every
            copy, and r = 1.
injected    a plain model (r = 1) with an injection or streams: the plain stack plus the wiring.

Taken for looped or plain runs they would move phi by exactly what they are meant to separate. They
are fitted only when asked for, in place of r = 1.
"""

from typing import Literal, get_args

import pandas as pd

from looped.errors import UserError
from looped.record import Record
from looped.scaling.exclusion import Exclusion

Reference = Literal["plain", "unshared", "injected"]
REFERENCES: tuple[Reference, ...] = get_args(Reference)
CONTROLS: tuple[Reference, ...] = REFERENCES[1:]

WHAT = {
    "unshared": "unshared blocks",
    "injected": "wiring without a loop",
}


def control_of(record: Record) -> str | None:
    """Which control a run is; null for a looped or a plain one."""
    model = record.model
    if model["recurrences"] > 1:
        return "unshared" if model.get("shared") is False else None
    wired = model.get("injection") not in (None, "none") or model.get("streams") not in (None, 1)
    return "injected" if wired else None


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
