"""What a sweep directory says of itself: the grids that were launched into it.

    <sweep>/sweep.yaml      grids: {configs/sweeps/demo.yaml: {grid: ..., base: ...}}
                            earlier: [{grid: ..., base: ...}]

Several grids may share a directory, and with it their r = 1 runs. A grid that changes may add or
drop runs; one that would alter a run that has begun is refused with the difference. What a grid was
before is kept as long as runs that have begun are planned there alone.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from looped.atomic_write import write_atomically
from looped.errors import UserError
from looped.sweeps.base import make_base
from looped.sweeps.cells import PLAIN_RECIPE
from looped.sweeps.grid import make_grid
from looped.sweeps.locks import sweep_lock
from looped.sweeps.plan import PlannedRun, plan_runs
from looped.sweeps.status import has_begun
from looped.yaml_mapping import read_mapping

SWEEP_FILE = "sweep.yaml"

SECTIONS_THAT_COUNT = ("model", "data", "compute", "trainer")
TRAINER_KEYS_THAT_COUNT = ("precision", "gradient_clip_val", "gradient_clip_algorithm")
HARMLESS = (
    "data.num_workers",
    "data.batch_size",
    "model.activation_checkpointing",
    "model.compile_blocks",
)
"""Changing these leaves a run the experiment it is; tokens per step are compared as such."""


def register(grid_path: Path, runs: list[PlannedRun], *, out: Path) -> None:
    """Enter a grid into its sweep directory, which is made if need be.

    Args:
        grid_path: the grid YAML.
        runs: what it plans now.
        out: the sweep directory.

    Raises:
        UserError: the grid would alter a run that has begun, or the directory cannot be written.
    """
    try:
        with sweep_lock(out):
            file = _read(out)
            _refuse_changes(_all_runs(file, out), runs, grid_path)
            entry = {"grid": read_mapping(grid_path), "base": runs[0].base.content}
            key = _key_of(grid_path, file)
            before = file.grids.get(key)
            file.grids[key] = entry
            if before not in (None, entry):
                file.earlier.append(before)
            current = {run.name for run in _current_runs(file, out)}
            kept = [old for old in file.earlier if _begun(old, out, other_than=current)]
            content = {"schema": 1, "grids": file.grids, "earlier": kept}
            write_atomically(out / SWEEP_FILE, yaml.safe_dump(content, sort_keys=False))
    except OSError as error:
        raise UserError(f"sweep directory {out}: {error.strerror}") from error


def check_unchanged(grid_path: Path, runs: list[PlannedRun], *, out: Path) -> None:
    """Refuse a grid that would alter a run that has begun, without entering it.

    Raises:
        UserError: it would.
    """
    _refuse_changes(_all_runs(_read(out), out), runs, grid_path)


def registered_runs(out: Path) -> list[PlannedRun]:
    """The runs of every grid that was launched into a sweep directory, each once.

    Runs that a grid no longer lists are among them when they have begun.

    Raises:
        UserError: it is no directory, no sweep was launched into it, or its file cannot be read.
    """
    if not out.is_dir():
        raise UserError(f"no sweep in {out}: it is no directory; name the `out` of a grid YAML")
    file = _read(out)
    if not file.grids:
        raise UserError(
            f"no sweep in {out}: it has no {SWEEP_FILE}; start one with looped sweep run"
        )
    runs = {run.name: run for run in reversed(_current_runs(file, out))}
    for entry in file.earlier:
        for run in _begun(entry, out, other_than=runs.keys()):
            runs[run.name] = run
    return sorted(runs.values(), key=_order)


def runs_beside(
    grid_paths: Iterable[Path], runs: list[PlannedRun], *, out: Path
) -> list[PlannedRun]:
    """What a sweep directory has beside some grids and what will be fitted together with them.

    Args:
        grid_paths: the grid YAMLs.
        runs: what they plan now.
        out: the sweep directory.

    Returns:
        The runs of other grids, and those that have begun under earlier ones, each once.

    Raises:
        UserError: the file of the directory cannot be read.
    """
    file = _read(out)
    keys = [_key_of(path, file) for path in grid_paths]
    before = [file.grids.pop(key) for key in keys if key in file.grids]
    beside = {run.name: run for run in _current_runs(file, out)}
    for entry in (*file.earlier, *before):
        beside |= {run.name: run for run in _begun(entry, out, other_than=beside.keys())}
    own = {run.name for run in runs}
    return [run for run in beside.values() if run.name not in own]


@dataclass(kw_only=True)
class _SweepFile:
    """The grids as they are now, and what some of them were before."""

    grids: dict[str, Any] = field(default_factory=dict)
    earlier: list[Any] = field(default_factory=list)


def _order(run: PlannedRun) -> tuple[float, int, int, int, bool, str]:
    """That of a plan: small horizons first, recurrence counts and recipes side by side."""
    a = run.architecture
    return run.horizon[1], run.seed, a.width, a.recurrences, run.recipe != PLAIN_RECIPE, run.recipe


def _read(out: Path) -> _SweepFile:
    if not (out / SWEEP_FILE).exists():
        return _SweepFile()
    try:
        content = read_mapping(out / SWEEP_FILE)
        grids, earlier = content.get("grids"), content.get("earlier", [])
        if not isinstance(grids, dict) or not isinstance(earlier, list):
            raise UserError("has no grids")
    except UserError as error:
        raise UserError(f"{out / SWEEP_FILE}: {error}") from error
    return _SweepFile(grids=grids, earlier=earlier)


def _key_of(grid_path: Path, file: _SweepFile) -> str:
    """The name under which a grid stands in the file: that of its first launch."""
    resolved = grid_path.resolve()
    return next((key for key in file.grids if Path(key).resolve() == resolved), str(grid_path))


def _current_runs(file: _SweepFile, out: Path) -> list[PlannedRun]:
    return [run for entry in file.grids.values() for run in _runs_of(entry, out)]


def _all_runs(file: _SweepFile, out: Path) -> list[PlannedRun]:
    """With those of earlier grids first, so that a newer plan of the same run counts."""
    earlier = [run for entry in file.earlier for run in _runs_of(entry, out)]
    return earlier + _current_runs(file, out)


def _begun(entry: Any, out: Path, *, other_than: Collection[str]) -> list[PlannedRun]:
    runs = _runs_of(entry, out)
    return [run for run in runs if run.name not in other_than and has_begun(run.directory)]


def _runs_of(entry: Any, out: Path) -> list[PlannedRun]:
    try:
        if not isinstance(entry, dict) or not all(
            isinstance(entry.get(part), dict) for part in ("grid", "base")
        ):
            raise UserError("an entry is not a grid with its base: looped did not write it")
        grid = make_grid(entry["grid"] | {"out": str(out)})
        return plan_runs(grid, make_base(grid.base, entry["base"]))
    except UserError as error:
        raise UserError(f"{out / SWEEP_FILE}: {error}") from error


def _refuse_changes(before: list[PlannedRun], now: list[PlannedRun], grid_path: Path) -> None:
    earlier = {run.name: run for run in before}
    changed = {}
    for run in now:
        if run.name in earlier:
            difference = difference_of(earlier[run.name], run)
            if difference and has_begun(run.directory):
                changed[run.name] = difference
    if changed:
        name, difference = next(iter(changed.items()))
        more = f" (and {len(changed) - 1} more runs)" if len(changed) > 1 else ""
        raise UserError(
            f"grid {grid_path} alters runs that have begun: {name}{more}: {'; '.join(difference)}. "
            "Take the change back, or choose another out"
        )


def difference_of(before: PlannedRun, now: PlannedRun) -> list[str]:
    """What makes a run another experiment than it was, one entry per setting."""
    old, new = _definition(before), _definition(now)
    names = sorted(old.keys() | new.keys())
    return [
        f"{name} {new.get(name)} instead of {old.get(name)}"
        for name in names
        if old.get(name) != new.get(name)
    ]


def _definition(run: PlannedRun) -> dict[str, Any]:
    """What makes a run the experiment it is, by dotted name."""
    sections = {name: run.base.content.get(name) for name in SECTIONS_THAT_COUNT}
    flat = _flattened(sections)
    kept = {
        name: value
        for name, value in flat.items()
        if name not in HARMLESS
        and not (name.startswith("trainer.") and name[8:] not in TRAINER_KEYS_THAT_COUNT)
    }
    derived = {"tokens per step": run.plan.tokens_per_step, "planned steps": run.plan.steps}
    return kept | run.settings | derived


def _flattened(content: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in content.items():
        if isinstance(value, dict):
            flat |= _flattened(value, f"{prefix}{name}.")
        elif value is not None:
            flat[f"{prefix}{name}"] = value
    return flat
