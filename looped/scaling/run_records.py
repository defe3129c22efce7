"""Run directories and checkpoints -> one record per run.

A run counts once however many files it left: `run.json`, `last.ckpt`, copies, `-v1`. The newest
record speaks for it, and the others must not contradict it. A file that cannot be read is named and
stops nothing.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from looped.record import (
    CHECKPOINT_DIR,
    RUN_FILE,
    Record,
    RecordError,
    read_checkpoint,
    read_run_file,
)
from looped.scaling.exclusion import Exclusion
from looped.scaling.points import shorten

CHECKPOINT_SUFFIX = ".ckpt"


@dataclass(frozen=True)
class FoundRun:
    """One run and where its newest record lies."""

    record: Record
    path: Path


def find_records(sources: list[Path]) -> tuple[list[FoundRun], list[Exclusion]]:
    """Every run under the given directories and files, once.

    Args:
        sources: sweep directories, run directories (searched recursively), checkpoint or
            `run.json` files.

    Returns:
        The runs in order of path, and what was left out with its reason: unreadable files,
        contradicting records, second copies of a run.
    """
    excluded: list[Exclusion] = []
    by_home: dict[Path, list[FoundRun]] = {}
    for path in dict.fromkeys(file.resolve() for file in _record_files(sources)):
        read = read_run_file if path.name == RUN_FILE else read_checkpoint
        try:
            record = read(path)
            why = _unusable(record)
        except RecordError as error:
            why = " ".join(str(error).split())
        except RecursionError:
            why = "nested too deeply to be a record"
        if why is not None:
            excluded.append(Exclusion(_shown(path), why))
        else:
            by_home.setdefault(home_of(path), []).append(FoundRun(record, path))

    runs: dict[tuple[Any, ...], FoundRun] = {}
    for home in sorted(by_home):
        for identity, files in _by_identity(by_home[home]).items():
            contradiction = _contradiction(files)
            newest = max(files, key=_progress)
            if contradiction:
                excluded.append(Exclusion(_shown(newest.path.parent), contradiction))
            elif identity in runs:
                first = runs[identity]
                kept, left = sorted([first, newest], key=_progress, reverse=True)
                runs[identity] = kept
                excluded.append(Exclusion(_shown(left.path), f"duplicate of {_shown(kept.path)}"))
            else:
                runs[identity] = newest
    return list(runs.values()), excluded


def _unusable(record: Record) -> str | None:
    """Why a record cannot even be told from others; null when it can."""
    for name in ("run", "recipe", "started"):
        if not isinstance(getattr(record, name), str):
            return f"its record has {name} = {shorten(getattr(record, name))}: not text"
    for name, value in (("seed", record.seed), ("progress.step", record.progress.get("step"))):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            return f"its record has {name} = {shorten(value)}: not a whole number"
    return None


def _record_files(sources: list[Path]) -> Iterator[Path]:
    for source in sources:
        if source.is_file():
            yield source
        for folder, subfolders, names in os.walk(source):
            subfolders.sort()
            for name in sorted(names):
                if name == RUN_FILE or name.endswith(CHECKPOINT_SUFFIX):
                    yield Path(folder, name)


def home_of(path: Path) -> Path:
    """The run directory of a file: that of run.json, or the one that holds `checkpoints`.

    A checkpoint need not lie directly in either: a metric in its name may have made folders.
    """
    for parent in path.parents:
        if (parent / RUN_FILE).is_file():
            return parent
        if parent.name == CHECKPOINT_DIR:
            return parent.parent
    return path.parent


def _by_identity(files: list[FoundRun]) -> dict[tuple[Any, ...], list[FoundRun]]:
    """Files of one directory, by the run that wrote them.

    Beside a run.json every checkpoint claims to be of that run; without one, a folder may hold
    checkpoints of many.
    """
    official = [found for found in files if found.path.name == RUN_FILE]
    if official:
        return {_identity(official[0].record): files}
    groups: dict[tuple[Any, ...], list[FoundRun]] = {}
    for found in files:
        groups.setdefault(_identity(found.record), []).append(found)
    return groups


def _identity(record: Record) -> tuple[Any, ...]:
    return record.recipe, record.run, record.seed, record.started


def _progress(found: FoundRun) -> tuple[int, int, bool]:
    record = found.record
    return record.progress.get("step") or 0, len(record.validation), record.status == "complete"


def _facts(record: Record) -> dict[str, Any]:
    """What never changes while a run goes on."""
    facts: dict[str, Any] = {
        "run": record.run,
        "recipe": record.recipe,
        "seed": record.seed,
    }
    facts |= {f"model.{name}": value for name, value in record.model.items()}
    facts |= {f"params.{name}": value for name, value in record.params.items()}
    facts |= {f"flops.{name}": record.flops.get(name) for name in ("convention", "per_token")}
    facts |= {f"data.{name}": value for name, value in (record.data or {}).items()}
    facts |= {
        f"validation loss at step {entry.step}, r = {entry.recurrences}": entry.loss
        for entry in record.validation
    }
    return facts


def _contradiction(files: list[FoundRun]) -> str | None:
    """The first fact on which two files of one run differ, in words."""
    first, *others = files
    facts = _facts(first.record)
    for other in others:
        for name, value in _facts(other.record).items():
            if name in facts and facts[name] != value:
                return (
                    f"{first.path.name} and {other.path.name} disagree: {name} is "
                    f"{facts[name]!r} in one and {value!r} in the other"
                )
            facts.setdefault(name, value)
    return None


def _shown(path: Path) -> str:
    """The path as a user would type it: relative to where they are when below it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
