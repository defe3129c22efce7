"""How a page was made: enough to make it again, and to see what its runs have in common."""

import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version

import numpy as np
import pandas as pd

import looped
from looped.report.curves import TrainedRun
from looped.scaling.analysis import Analysis
from looped.scaling.intervals import DESCRIPTIONS
from looped.scaling.quantity import quantity
from looped.scaling.runs import RunPool
from looped.scaling.size_family import flops_per_token

LIBRARIES = ("numpy", "scipy", "pandas", "lmfit", "matplotlib", "seaborn", "jinja2")
NOT_TOLD = "not told"


def origin(
    pool: RunPool,
    analyses: Mapping[str, Analysis],
    *,
    trained: Sequence[TrainedRun],
    command: str,
) -> list[tuple[str, str]]:
    """What was done, with what and on what, as pairs of a name and a text.

    Args:
        pool: the runs that were read.
        analyses: of its recipes, at least one.
        trained: those of them that come from records.
        command: as it was typed.
    """
    versions = {"looped": looped.__version__, "python": platform.python_version()}
    versions |= {name: version(name) for name in LIBRARIES}
    flops = (flops_per_token(pool.table) * pool.table["tokens"]).dropna()
    spent = f"{quantity(float(flops.sum()))} FLOPs in {_runs(len(flops))}"
    wall_h = sum(run.record.wall_s for run in trained) / 3600
    rows = [
        ("Command", command),
        ("Made", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
        ("Made with", _libraries(versions)),
        ("Fit", _fit(next(iter(analyses.values())))),
        ("FLOP convention", _counted(pool.table["convention"])),
        ("Validation data", _counted(pool.table["fingerprint"])),
        ("Tokenizer", _counted(pool.table["tokenizer"])),
        ("Trained with", _counted([_libraries(run.record.versions) for run in trained])),
        ("Compute", spent if len(flops) else NOT_TOLD),
        ("Training time", f"{wall_h:.3g} hours of one run after another" if trained else NOT_TOLD),
    ]
    return [(name, text) for name, text in rows if text != NOT_TOLD]


def _fit(analysis: Analysis) -> str:
    fit, interval = analysis.fit, analysis.intervals.intervals[analysis.kind]
    words = [fit.estimator.replace("_", " ")]
    if np.isfinite(fit.delta):
        words[0] += f" (delta {fit.delta:g} in log L)"
    held = fit.options["fix"]
    words += [f"{name} held at {value:g}" for name, value in held.items()]
    words.append(f"interval of phi: {DESCRIPTIONS[interval.kind]}, {100 * interval.level:g} %")
    return ", ".join(words)


def _libraries(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items())


def _counted(values: Iterable[str]) -> str:
    """Each distinct text with the number of runs that have it."""
    counts = Counter(NOT_TOLD if pd.isna(value) else value for value in values)
    if set(counts) <= {NOT_TOLD}:
        return NOT_TOLD
    return "; ".join(f"{text} ({_runs(number)})" for text, number in counts.most_common())


def _runs(number: int) -> str:
    return f"{number} run" + "s" * (number != 1)
