"""Beyond phi, in print: the worth of each recurrence count, and the laws beside the plain one."""

import math
from collections.abc import Callable, Mapping

from rich.table import Table

from looped.scaling.intervals import Interval
from looped.scaling.nested import NestedFit
from looped.scaling.report_tables import plain_table, show
from looped.scaling.worth import Worth

HYPOTHESES = {
    "gains": "one phi for every r",
    "offset": "no offset of looped runs",
    "gain_offset": "no factor on their size",
}
"""What the plain law says to each law beside it."""


def worth_lines(worth: Worth) -> list[str]:
    """The worths with their intervals, and the sentence."""
    parts = []
    for r, gain in worth.gains.items():
        ends = "[no interval]"
        if gain.low is not None and gain.high is not None:
            ends = f"[{gain.low:.2f}, {gain.high:.2f}]"
        parts.append(f"r = {r}: {gain.value:.2f} {ends}")
    return [f"worth    {'   '.join(parts)}  (blocks)", f"         {worth.sentence}"]


def nested_test_rows(nested: Mapping[str, NestedFit]) -> list[tuple[str, str, str, str]]:
    """Hypothesis, p of independent runs, p of cells and delta AICc, where there is a test."""
    return [
        (
            HYPOTHESES[form],
            show(law.p, "{:.2g}"),
            show(law.p_cells, "{:.2g}"),
            show(law.delta_aicc, "{:+.1f}"),
        )
        for form, law in nested.items()
        if law.p is not None
    ]


def nested_table(nested: Mapping[str, NestedFit]) -> Table:
    """Phi and what is beside it, law by law; a law that cannot be told says why."""
    table = plain_table("law beside it", "phi", "being looped", "objective")
    for form, law in nested.items():
        if law.faults:
            table.add_row(form, "cannot tell", law.faults[0], "-")
        elif form == "gains":
            table.add_row(form, "one per r, above", "-", show(law.objective, "{:.4e}"))
        else:
            cells = (_phi(law), being_looped(law), show(law.objective, "{:.4e}"))
            table.add_row(form, *cells)
    return table


def being_looped(law: NestedFit) -> str:
    """The offset in log L, or the factor on N_eff, with its interval."""
    name = "offset" if law.form == "offset" else "log_factor"
    value, interval = law.values[name], law.intervals[name]
    assert value is not None
    if law.form == "offset":
        return f"log L {value:+.4f} {_ends(interval, '{:+.4f}')}"
    return f"N_eff x {math.exp(value):.3f} {_ends(interval, '{:.3f}', scale=math.exp)}"


def _phi(law: NestedFit) -> str:
    value, interval = law.values["phi"], law.intervals["phi"]
    return f"{show(value, '{:.3f}')} {_ends(interval, '{:.2f}')}"


def _ends(interval: Interval, form: str, *, scale: Callable[[float], float] = float) -> str:
    if interval.low is None or interval.high is None:
        return f"(no interval: {interval.why_none})"
    return f"[{form.format(scale(interval.low))}, {form.format(scale(interval.high))}]"
