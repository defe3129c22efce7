"""From what training left behind to the table that is fitted, one row per complete run."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from looped.controls import control_of
from looped.errors import UserError
from looped.record import RUN_FILE, Record
from looped.scaling.controls import Reference, choose_reference, control_recipes
from looped.scaling.exclusion import Exclusion
from looped.scaling.levels import levels_of
from looped.scaling.points import is_number, shorten, why_unfit
from looped.scaling.run_records import CHECKPOINT_SUFFIX, FoundRun, find_records
from looped.scaling.run_tables import DEFAULT_RECIPE, read_table

COLUMNS = (
    *("run", "recipe", "recurrences", "n_once", "n_rec", "tokens", "loss"),
    *("budget_flops", "flops_per_token", "width", "n_injection", "seed", "epochs", "quality"),
    *("convention", "fingerprint", "tokenizer", "control", "path"),
)

MUST_AGREE = {
    "convention": "FLOP convention",
    "fingerprint": "validation data fingerprint",
    "tokenizer": "tokenizer",
}
"""Columns of which one pool may hold a single known value; each is an argument of `read_runs`."""

NEEDED_FIELDS = (
    ("model", "recurrences"),
    ("params", "n_once"),
    ("params", "n_rec"),
    ("progress", "tokens"),
)
"""Sections and fields of a record without which its run is no point."""

LARGEST = 1e40
"""Far beyond the FLOPs of any run, and small enough to compute with."""

NUMBER_FIELDS = (
    *(("flops", "budget"), ("flops", "per_token"), ("model", "width")),
    *(("params", "injection"), ("progress", "epochs")),
)
TEXT_FIELDS = (("flops", "convention"), ("data", "fingerprint"), ("data", "tokenizer"))
"""Fields that may be null; but a record in which they are something else is damaged."""


@dataclass(frozen=True)
class RunPool:
    """The runs that may be fitted, and everything that was left out.

    Attributes:
        table: one row per run, with the columns `COLUMNS` (null where a source does not tell) and
            `level`: the budget the run shares with others, or the token count in a grid of equal
            token counts, as text.
        excluded: files and runs left out, with the reason.
        warnings: what a reader should know of the runs that stayed.
    """

    table: pd.DataFrame
    excluded: list[Exclusion]
    warnings: list[str] = field(default_factory=list)

    @property
    def recipes(self) -> list[str]:
        """Recipes that have looped runs, in alphabetical order; all recipes if none has."""
        looped = self.table[self.table["recurrences"] > 1]
        return sorted(set((looped if len(looped) else self.table)["recipe"]))

    def of_recipe(self, recipe: str, *, match_budgets: bool = True) -> pd.DataFrame:
        """The runs with which a recipe is fitted: its own, and plain ones to compare with.

        A recipe without r = 1 runs of its own takes those of its controls, where they are the
        reference, else the baseline's controls, else it shares those of all others.

        Args:
            recipe: its name.
            match_budgets: of shared r = 1 runs, take only those at the recipe's own budgets.

        Raises:
            UserError: no such recipe.
        """
        own = self.table[self.table["recipe"] == recipe]
        if own.empty:
            known = ", ".join(sorted(set(self.table["recipe"])))
            raise UserError(f"no run of recipe {recipe!r}: there are {known}")
        looped = own[own["recurrences"] > 1]
        plain = own[own["recurrences"] == 1]
        if plain.empty:
            plain = self.table[self.table["recurrences"] == 1]
            for owner in (recipe, DEFAULT_RECIPE):
                controls = plain["control"].notna() & plain["recipe"].isin(control_recipes(owner))
                if controls.any():
                    plain = plain[controls]
                    break
            if match_budgets and len(looped):
                plain = plain[plain["level"].isin(set(looped["level"]))]
        return pd.concat([plain, looped]).sort_index()


def read_runs(
    sources: Sequence[str | PathLike[str]] | str | PathLike[str],
    *,
    convention: str | None = None,
    fingerprint: str | None = None,
    tokenizer: str | None = None,
    reference: Reference = "plain",
) -> RunPool:
    """Read sweep directories, run directories, checkpoint files and CSV files, mixed as you like.

    Args:
        sources: one or more paths.
        convention: fit only runs whose FLOPs were counted so; null = all must agree.
        fingerprint: fit only runs validated on the data of this fingerprint; null = as above.
        tokenizer: fit only runs of this tokenizer; null = as above.
        reference: what looped runs are measured against: `plain` runs, or a control in place of
            r = 1 (`controls.py`).

    Returns:
        The usable runs and every file or run left out, with its reason.

    Raises:
        UserError: no such path, nothing to read in it, no usable run at all, a CSV without a needed
            column, runs that differ in convention, fingerprint or tokenizer, or no run of the
            reference.
    """
    given = [sources] if isinstance(sources, (str, PathLike)) else list(sources)
    paths = list(dict.fromkeys(Path(source) for source in given))
    tables, folders = _sort_sources(paths)
    found, excluded = find_records(folders)
    frames = []
    for path in tables:
        frame, left_out = read_table(path)
        frames.append(frame)
        excluded += left_out
    rows = []
    for run in found:
        why = _unfit(run.record)
        if why is None:
            rows.append(_row(run))
        else:
            excluded.append(Exclusion(run.record.run, why))
    if rows:
        frames.append(pd.DataFrame(rows))
    table = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    table = table.reindex(columns=list(COLUMNS))

    wanted = {"convention": convention, "fingerprint": fingerprint, "tokenizer": tokenizer}
    for column, value in wanted.items():
        table, others = _select(table, column, value)
        excluded += others
    table, duplicates = _drop_duplicates(table)
    excluded += duplicates
    table, others = choose_reference(table, reference)
    excluded += others
    if table.empty:
        raise UserError(_nothing_usable(paths, excluded))
    table["recurrences"] = table["recurrences"].astype(int)
    table["level"], warnings = levels_of(table)
    if reference != "plain":
        count = int((table["control"] == reference).sum())
        warnings.append(f"r = 1 stands for {count} {reference} runs here, not for plain ones")
    return RunPool(table.reset_index(drop=True), excluded, warnings)


def _sort_sources(paths: list[Path]) -> tuple[list[Path], list[Path]]:
    """CSV files, and everything in which records lie."""
    tables, folders = [], []
    for path in paths:
        if not path.exists():
            raise UserError(f"{path}: no such file or directory")
        if path.is_dir() or path.suffix == CHECKPOINT_SUFFIX or path.name == RUN_FILE:
            folders.append(path)
        elif path.suffix.lower() == ".csv":
            tables.append(path)
        else:
            raise UserError(
                f"{path} is neither a directory of runs, a {CHECKPOINT_SUFFIX} file, a {RUN_FILE} "
                "nor a .csv table"
            )
    return tables, folders


def _unfit(record: Record) -> str | None:
    """Why the run of a record is no point of the fit; null when it is one."""
    for section, name in NEEDED_FIELDS:
        value = getattr(record, section).get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            return f"its record has {section}.{name} = {shorten(value)}: not a whole number"
    for section, name in NUMBER_FIELDS:
        value = getattr(record, section).get(name)
        if value is not None and not (is_number(value) and abs(value) <= LARGEST):
            return f"its record has {section}.{name} = {shorten(value)}: no number, or too large"
    for section, name in TEXT_FIELDS:
        value = (getattr(record, section) or {}).get(name)
        if value is not None and not isinstance(value, str):
            return f"its record has {section}.{name} = {shorten(value)}: not text"
    if record.status == "diverged":
        return "diverged"
    if record.status != "complete":
        planned = record.progress.get("planned_steps")
        return f"not complete: {record.status} at step {record.progress.get('step')} of {planned}"
    final = [v for v in record.validation if v.recurrences == record.model.get("recurrences")]
    if not final:
        return "no validation at its own recurrence count"
    if final[-1].loss is None:
        return "its validation loss is not a finite number"
    return why_unfit(
        {name: getattr(record, section)[name] for section, name in NEEDED_FIELDS}
        | {"loss": final[-1].loss}
    )


def _row(run: FoundRun) -> dict[str, Any]:
    record = run.record
    data = record.data or {}
    recurrences = record.model["recurrences"]
    control = control_of(record.model)
    losses = [v.loss for v in record.validation if v.recurrences == recurrences]
    return {
        "run": record.run,
        "recipe": record.recipe,
        "recurrences": recurrences if control is None else 1,
        "n_once": record.params["n_once"],
        "n_rec": record.params["n_rec"],
        "tokens": record.progress["tokens"],
        "loss": losses[-1],
        "budget_flops": record.flops.get("budget"),
        "flops_per_token": record.flops.get("per_token"),
        "width": record.model.get("width"),
        "n_injection": record.params.get("injection"),
        "seed": record.seed,
        "epochs": record.progress.get("epochs"),
        "quality": None,
        "convention": record.flops.get("convention"),
        "fingerprint": data.get("fingerprint"),
        "tokenizer": data.get("tokenizer"),
        "control": control,
        "path": str(run.path),
    }


def _select(
    table: pd.DataFrame, column: str, wanted: str | None
) -> tuple[pd.DataFrame, list[Exclusion]]:
    """Keep the runs of one value; refuse a mixture when none was named."""
    known = table[column].dropna()
    if wanted is None:
        counts = known.value_counts()
        if len(counts) > 1:
            (first, n_first), (second, n_second) = list(counts.items())[:2]
            raise UserError(
                f"runs of different {MUST_AGREE[column]} cannot be fitted together: {n_first} have "
                f"{first!r} and {n_second} have {second!r}; choose with --{column}"
            )
        return table, []
    other = table[column].notna() & (table[column] != wanted)
    excluded = [
        Exclusion(row["run"], f"other {MUST_AGREE[column]}: {row[column]!r}, not {wanted!r}")
        for _, row in table[other].iterrows()
    ]
    return table[~other], excluded


def _drop_duplicates(table: pd.DataFrame) -> tuple[pd.DataFrame, list[Exclusion]]:
    """A loss that agrees to the last digit at the same size and tokens is the same run."""
    key = ["recipe", "recurrences", "n_once", "n_rec", "tokens", "loss", "seed"]
    first: dict[tuple[Any, ...], str] = {}
    repeated, excluded = [], []
    for index, row in table.iterrows():
        values = tuple(None if pd.isna(value) else value for value in row[key])
        if values in first:
            repeated.append(index)
            excluded.append(Exclusion(row["run"], f"duplicate of {first[values]}"))
        else:
            first[values] = row["run"]
    return table.drop(index=repeated), excluded


def _nothing_usable(paths: list[Path], excluded: list[Exclusion]) -> str:
    where = ", ".join(map(str, paths)) or "nothing"
    if not excluded:
        return (
            f"no runs in {where}: neither a {RUN_FILE} nor a {CHECKPOINT_SUFFIX} file of looped "
            "nor a row of a table"
        )
    reasons = Counter(left.why for left in excluded)
    why, count = reasons.most_common(1)[0]
    return (
        f"no usable run in {where}: all {len(excluded)} were left out, "
        f"{count} of them because: {why} (the first: {excluded[0].run})"
    )
