"""CSV files of runs -> rows of the table that is fitted."""

from pathlib import Path

import pandas as pd

from looped.errors import UserError
from looped.scaling.exclusion import Exclusion

NEEDED = ("recurrences", "n_once", "n_rec", "tokens", "loss")
NUMBERS = ("budget_flops", "flops_per_token", "width", "n_injection", "epochs", "seed")
WORDS = ("run", "recipe", "quality", "convention", "fingerprint", "tokenizer")

DEFAULT_RECIPE = "baseline"
"""Recipe of the rows of a file without that column."""


def read_table(path: Path) -> tuple[pd.DataFrame, list[Exclusion]]:
    """Read one CSV file.

    Args:
        path: with at least the columns `recurrences, n_once, n_rec, tokens, loss`.

    Returns:
        One row per usable line, `run` being `FILE:LINE` unless the file names its runs; and the
        lines left out, with the reason.

    Raises:
        UserError: unreadable, not a table, or without a needed column.
    """
    try:
        # As text, so that a value that is no number can be shown as it was written.
        content = pd.read_csv(
            path, dtype=str, keep_default_na=False, skipinitialspace=True, skip_blank_lines=False
        )
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not a CSV table: {error}") from error
    missing = [name for name in NEEDED if name not in content]
    if missing:
        raise UserError(
            f"{path} lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}: a table of "
            f"runs needs {', '.join(NEEDED)}"
        )
    lines = content.index + 2  # the header is line 1
    table = pd.DataFrame({"run": [f"{path.name}:{line}" for line in lines]})
    for name in NEEDED + NUMBERS:
        if name in content:
            table[name] = pd.to_numeric(content[name], errors="coerce")
    for name in WORDS:
        if name in content:
            words = content[name].where(content[name] != "")
            table[name] = words if name != "run" else words.fillna(table["run"])
    if "recipe" not in table:
        table["recipe"] = DEFAULT_RECIPE
    table["recipe"] = table["recipe"].fillna(DEFAULT_RECIPE)

    blank = (content == "").all(axis=1)
    faults = {
        int(i): fault
        for i in table.index[~blank]
        if (fault := _fault(table.loc[i], content.loc[i])) is not None
    }
    excluded = [Exclusion(f"{path.name}:{lines[i]}", why) for i, why in faults.items()]
    kept = table[~blank & ~table.index.isin(list(faults))]
    return kept.reset_index(drop=True), excluded


def _fault(row: pd.Series, written: pd.Series) -> str | None:
    """Why a line cannot be fitted; null when it can."""
    for name in NEEDED:
        value = row[name]
        least = 0 if name in ("n_once", "n_rec") else None
        if not (pd.notna(value) and abs(value) != float("inf")):
            return f"{name} is {written[name] or 'missing'}: not a finite number"
        if value < 0 or (value == 0 and least is None):
            return f"{name} is {written[name]}: not positive"
    if row["recurrences"] != int(row["recurrences"]):
        return f"recurrences is {written['recurrences']}: not a whole number"
    if row["n_once"] + row["n_rec"] == 0:
        return "n_once + n_rec is 0"
    return None
