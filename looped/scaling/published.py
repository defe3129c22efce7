"""The published iso-depth runs, shipped with the package (looped/scaling/data/README.md)."""

from pathlib import Path

import pandas as pd

from looped.scaling.runs import RunPool, read_runs

DATA = Path(__file__).parent / "data"
RUNS_FILE = DATA / "isodepth_runs.csv"
MINIMA_FILE = DATA / "isodepth_minima.csv"


def published_runs() -> RunPool:
    """The 177 runs: recipe `baseline`, and the looped runs of recipe `truncated`."""
    return read_runs(RUNS_FILE)


def published_minima() -> pd.DataFrame:
    """The 24 compute-optimal minima: recipe, budget_flops, recurrences, n_total, loss."""
    return pd.read_csv(MINIMA_FILE)
