"""CSV files of runs -> rows of the table that is fitted, and back."""

import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from looped.controls import CONTROLS
from looped.errors import UserError
from looped.scaling.exclusion import Exclusion
from looped.scaling.points import RANGES, shorten, why_unfit

NEEDED = tuple(RANGES)
NUMBERS = ("budget_flops", "flops_per_token", "width", "n_injection", "epochs", "seed")
WORDS = ("run", "recipe", "quality", "convention", "fingerprint", "tokenizer", "control")

DEFAULT_RECIPE = "baseline"
"""Recipe of the rows of a file without that column."""


def read_table(path: Path) -> tuple[pd.DataFrame, list[Exclusion]]:
    """Read one CSV file.

    Args:
        path: with at least the columns `recurrences, n_once, n_rec, tokens, loss`. Where no
            `control` is given, a recipe named `<recipe>-unshared` or `-injected`, as a sweep names
            its controls, is one. In a line whose control is `unshared`, n_rec counts every copy; it
            is read as r = 1.

    Returns:
        One row per usable line, `run` being `FILE:LINE` unless the file names its runs; and the
        lines left out, with the reason.

    Raises:
        UserError: unreadable, not a table, or without a needed column.
    """
    try:
        # As text, so that a value that is no number can be shown as it was written.
        with warnings.catch_warnings():
            # Lines longer than the header: pandas would drop their end, or take the first column
            # for names of the lines.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            content = pd.read_csv(
                path,
                dtype=str,
                index_col=False,
                keep_default_na=False,
                skipinitialspace=True,
                skip_blank_lines=False,
            )
    except pd.errors.ParserWarning as error:
        raise UserError(
            f"{path} is not a CSV table: its lines have more fields than its header, such as a "
            "comma at their end"
        ) from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{path} is not a CSV table: {reason}") from error
    # pandas numbers the columns of a name that occurs twice.
    twice = [name for name in NEEDED + NUMBERS + WORDS if f"{name}.1" in content]
    if twice:
        raise UserError(f"{path} has more than one column {twice[0]}: leave one")
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
    if "control" not in table:
        table["control"] = pd.Series(index=table.index, dtype=object)
    for control in CONTROLS:
        named = table["recipe"].str.endswith(f"-{control}")
        table.loc[table["control"].isna() & named, "control"] = control

    blank = (content == "").all(axis=1)
    faults = {
        int(i): fault
        for i in table.index[~blank]
        if (fault := _why_left_out(table.loc[i].to_dict(), content.loc[i].to_dict()))
    }
    table.loc[table["control"] == "unshared", "recurrences"] = 1
    excluded = [Exclusion(f"{path.name}:{lines[i]}", why) for i, why in faults.items()]
    kept = table[~blank & ~table.index.isin(list(faults))]
    return kept.reset_index(drop=True), excluded


def table_text(table: pd.DataFrame) -> str:
    """The runs of a pool as CSV, as `read_table` reads it, to the last digit.

    Args:
        table: of a `RunPool`; columns of which no run tells anything are left out.
    """
    columns = [name for name in ("run", "recipe", *NEEDED, *NUMBERS, *WORDS) if name in table]
    told = table[list(dict.fromkeys(columns))].dropna(axis="columns", how="all")
    return told.convert_dtypes().to_csv(index=False, lineterminator="\n")


def _why_left_out(point: dict[Any, Any], written: dict[Any, Any]) -> str | None:
    """Why a line is no point of the law; null when it is one."""
    control = point.get("control")
    if isinstance(control, str) and control not in CONTROLS:
        return f"control is {shorten(control)}: neither {' nor '.join(CONTROLS)}"
    return why_unfit(point, written=written)
