"""What a log shows of a sweep: one line per ended run, in columns."""

import io

from rich.console import Console

from looped.sweeps.display import SweepDisplay
from looped.sweeps.grid import read_grid
from looped.sweeps.messages import Reply
from looped.sweeps.plan import plan_sweep


def test_the_column_is_as_wide_as_the_longest_name(write_grid):
    """However long the name of a recipe is, the results stand below each other."""
    recipes = {"baseline": {}, "hyperconnections-of-a-long-name": {"streams": 2}}
    runs = plan_sweep(read_grid(write_grid(recipes=recipes)))
    log = io.StringIO()
    with SweepDisplay(Console(file=log), runs) as display:
        for run in runs:
            display.started(run)
            display.ended(run, Reply(outcome="failed", error="no such thing"))
    lines = log.getvalue().splitlines()
    assert len(lines) == len(runs)
    assert len({line.index("failed:") for line in lines}) == 1
    assert all("  failed: no such thing" in line for line in lines)
