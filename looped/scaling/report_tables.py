"""How tables, numbers and intervals look in print, for every report."""

from rich.table import Table

from looped.scaling.intervals import Interval


def ends(interval: Interval) -> str:
    """The interval with as many digits as its width deserves."""
    if interval.low is None and interval.high is None:
        return "[no interval]"
    width = (interval.high or 0.0) - (interval.low or 0.0)
    digits = 2 if interval.low is None or interval.high is None or width > 0.05 else 3
    low, high = (
        "?" if end is None else f"{end:.{digits}f}" for end in (interval.low, interval.high)
    )
    return f"[{low}, {high}]"


def plain_table(*columns: str) -> Table:
    """A table without lines: the first column to the left, numbers to the right."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for i, name in enumerate(columns):
        table.add_column(name, justify="left" if i == 0 else "right")
    return table


def show(value: float | None, form: str = "{:.4g}") -> str:
    """A number, or a dash where there is none."""
    return "-" if value is None else form.format(value)
