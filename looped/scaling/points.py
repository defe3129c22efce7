"""One rule of what can be fitted, for records, lines of a table and tables made by hand."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

RANGES = {
    "recurrences": (1.0, 1e6),
    "n_once": (0.0, 1e18),
    "n_rec": (0.0, 1e18),
    "tokens": (1.0, 1e18),
    "loss": (1e-6, 1e4),
}
"""What a run needs, each with its smallest and largest value; beyond lies no run ever trained."""

SHOWN = 40
"""Characters of a wrong value that are shown."""


def why_unfit(point: Mapping[str, Any], *, written: Mapping[str, Any] | None = None) -> str | None:
    """Why a run cannot be fitted; null when it can.

    Args:
        point: `recurrences, n_once, n_rec, tokens, loss`, of any type.
        written: the same as the user wrote them, to be shown; null = as in `point`.
    """
    for name, (smallest, largest) in RANGES.items():
        value = point[name]
        shown = shorten((written or point)[name])
        if not is_number(value):
            return f"{name} is {shown or 'missing'}: not a finite number"
        if value < 0 or (value == 0 and smallest > 0):
            return f"{name} is {shown}: not positive"
        if not smallest <= value <= largest:
            return f"{name} is {shown}: not between {smallest:g} and {largest:g}"
    if point["recurrences"] != int(point["recurrences"]):
        return f"recurrences is {shorten((written or point)['recurrences'])}: not a whole number"
    if point["n_once"] + point["n_rec"] < 1:
        return f"n_once + n_rec is {point['n_once'] + point['n_rec']:g}: no parameters"
    return None


def is_number(value: Any) -> bool:
    """Whether a value is a finite number; true and false are none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    number: Any = value  # typeshed gives Real no comparison with float
    return bool(-float("inf") < number < float("inf"))  # false for NaN, exact for any int


def shorten(value: Any) -> str:
    """A value as text of one short line."""
    text = " ".join(str(value).split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
