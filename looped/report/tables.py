"""Rows of the page's tables: every run that was read, and how each recurrence count fares."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from looped.scaling.analysis import Analysis
from looped.scaling.quantity import quantity, signed, with_minus
from looped.scaling.size_family import flops_per_token

WORDS = ("run", "recipe", "control", "fitted in")
"""Columns of text; the others hold numbers."""


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Attributes:
        text: what is shown; empty where the value is not known.
        value: what the table is sorted by; null = by the text.
    """

    text: str
    value: float | None = None


@dataclass(frozen=True)
class SortableTable:
    """A table whose columns the reader may sort by.

    Attributes:
        heads: names of the columns.
        numeric: whether each column holds numbers.
        rows: cells in the order of `heads`.
    """

    heads: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[Cell, ...], ...]


def runs_table(runs: pd.DataFrame, analyses: Mapping[str, Analysis]) -> SortableTable:
    """Every usable run, with its residual under the law of its recipe and the fits that use it.

    Columns of which no source tells anything are left out.

    Args:
        runs: the table of a `RunPool`.
        analyses: by recipe.
    """
    uses: dict[str, dict[str, float | None]] = {}
    for name, analysis in analyses.items():
        fit = analysis.fit
        residuals = fit.residuals_nats if fit.law is not None else [None] * fit.num_runs
        for key, residual in zip(_keys(fit.runs), residuals, strict=True):
            uses.setdefault(key, {})[name] = None if residual is None else float(residual)
    table = runs.assign(train_flops=flops_per_token(runs) * runs["tokens"])
    rows = []
    for key, (_, run) in zip(_keys(table), table.iterrows(), strict=True):
        fits = uses.get(key, {})
        own = fits.get(run["recipe"], next(iter(fits.values()), None))
        rows.append(
            (
                Cell(str(run["run"])),
                Cell(str(run["recipe"])),
                Cell("" if pd.isna(run["control"]) else str(run["control"])),
                _number(run["recurrences"], "{:.0f}".format),
                _number(run["width"], "{:.0f}".format),
                _number(run["n_once"], quantity),
                _number(run["n_rec"], quantity),
                _number(run["tokens"], quantity),
                _number(run["train_flops"], quantity),
                _number(run["seed"], "{:.0f}".format),
                _number(run["loss"], "{:.4f}".format),
                _number(own, lambda nats: signed(nats, digits=4)),
                Cell(", ".join(fits) or "no fit"),
            )
        )
    heads: tuple[str, ...] = (
        *("run", "recipe", "control", "r", "width", "N once", "N rec", "tokens", "FLOPs", "seed"),
        *("loss (nats)", "residual (nats)", "fitted in"),
    )
    told = [place for place in range(len(heads)) if any(row[place].text for row in rows)]
    heads = tuple(heads[place] for place in told)
    return SortableTable(
        heads=heads,
        numeric=tuple(head not in WORDS for head in heads),
        rows=tuple(tuple(row[place] for place in told) for row in rows),
    )


def recurrence_rows(analysis: Analysis) -> list[dict[str, str]]:
    """Of each recurrence count: runs, bias and residual of the law, its worth free of the law."""
    gains = analysis.worth.gains if analysis.worth is not None else {}
    rows = []
    for r, group in analysis.by_recurrence.items():
        gain = gains.get(int(r))
        known = gain is not None and gain.low is not None and gain.high is not None
        rows.append(
            {
                "recurrences": r,
                "num_runs": str(group.num_runs),
                "bias": signed(group.bias, digits=4),
                "rmse": f"{group.rmse:.4f}",
                "worth": with_minus(f"{gain.value:.2f}") if gain else "",
                "interval": (
                    with_minus(f"{gain.low:.2f} to {gain.high:.2f}") if gain and known else ""
                ),
                "exponent": with_minus(f"{gain.exponent:.3f}") if gain else "",
            }
        )
    return rows


def _keys(runs: pd.DataFrame) -> list[str]:
    """What tells a row of the pool from every other; the fit has numbered its rows anew."""
    columns = ["run", "recipe", "recurrences", "n_once", "n_rec", "tokens", "loss", "seed"]
    return [repr(tuple(row)) for row in runs[columns].itertuples(index=False)]


def _number(value: Any, show: Any) -> Cell:
    if value is None or pd.isna(value) or not np.isfinite(float(value)):
        return Cell("")
    return Cell(show(float(value)), float(value))
