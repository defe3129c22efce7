"""How a page was made."""

import dataclasses

import numpy as np
import pandas as pd

from looped.report.curves import TrainedRun
from looped.report.origin import origin
from looped.scaling.analysis import analyse
from looped.scaling.runs import RunPool
from tests.scaling.grids import synthetic
from tests.scaling.records import record_of
from tests.scaling.test_runs import ROWS


def facts_of(table, trained=(), **options):
    analyses = {"baseline": analyse(table, resamples=10, **options)}
    return dict(origin(RunPool(table, []), analyses, trained=trained, command="looped report x"))


def table_of(**columns):
    empty = dict.fromkeys(("convention", "fingerprint", "tokenizer"), None)
    return synthetic().head(8).assign(**(empty | columns))


def test_what_no_run_tells_is_not_there():
    """A table of five columns has no convention, no data and no compute to speak of."""
    facts = facts_of(table_of())
    assert list(facts) == ["Command", "Made", "Made with", "Fit"]
    assert facts["Command"] == "looped report x"


def test_conventions_are_counted():
    """Runs that do not tell theirs are not passed over."""
    facts = facts_of(table_of(convention=["paper"] * 6 + [None] * 2))
    assert facts["FLOP convention"] == "paper (6 runs); not told (2 runs)"


def test_compute_and_time_are_summed():
    """FLOPs over the runs that tell them, hours over the records."""
    tokens = 1e9
    table = table_of(flops_per_token=[1e9] * 4 + [np.nan] * 4, tokens=tokens)
    record = dataclasses.replace(record_of(ROWS[0]), wall_s=5400.0, versions={"torch": "2.9"})
    run = TrainedRun(record=record, train_flops=np.array([]), train_loss=np.array([]))
    facts = facts_of(table, trained=[run, run])
    assert facts["Compute"] == "4\u00d710\u00b9\u2078 FLOPs in 4 runs"
    assert facts["Training time"] == "3 hours of one run after another"
    assert facts["Trained with"] == "torch 2.9 (2 runs)"


def test_the_choices_of_the_fit_are_named():
    """Estimator, what was held, which interval."""
    table = pd.concat([table_of(), synthetic().tail(20)])
    assert facts_of(table, fix={"E": 1.0}, kind="cluster", level=0.9)["Fit"] == (
        "huber (delta 0.001 in log L), E held at 1, "
        "interval of phi: cluster-robust error, t quantile, 90 %"
    )
