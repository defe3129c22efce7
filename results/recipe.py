"""Learning rates for models of the measurement's size: trains what is missing, prints the table.

    looped prepare --source stdlib --out data/recipe --seq_len 128 --tokenizer bpe:512 --seed 1
    python results/recipe.py --train --jobs 2      # into runs/recipe, resumable
    python results/recipe.py results/recipe        # the table of docs/measurement.md

Each setting changes one thing of where the search started. `--seed 1` validates on other documents
than the measurement does. Rates are quoted at the paper's reference point, as in configs/cpu.yaml.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import yaml
from rich.console import Console

from looped.record import Record, read_run_file
from looped.sweeps.base import make_base
from looped.sweeps.display import SweepDisplay
from looped.sweeps.grid import read_grid
from looped.sweeps.launch import run_sweep, what_is_left
from looped.sweeps.plan import PlannedRun, plan_runs
from looped.sweeps.workers import Workers

BASE = Path("configs/cpu.yaml")
GRID = Path("configs/sweeps/cpu.yaml")
DATA_DIR = "data/recipe"
OUT = Path("runs/recipe")

# Where the search started: the recipe of the demo, which was chosen at 4e5 tokens.
START: dict[str, float] = {
    "model.matrix_lr": 0.045,
    "model.embed_lr": 10.0,
    "model.head_lr": 0.44,
    "data.batch_size": 4,
}
SETTINGS: dict[str, dict[str, float]] = {
    "start": {},
    "matrix-half": {"model.matrix_lr": 0.0225},
    "matrix-double": {"model.matrix_lr": 0.09},
    "batch-2": {"data.batch_size": 2},
    "batch-8": {"data.batch_size": 8},
    "embed-third": {"model.embed_lr": 3.0},
    "embed-triple": {"model.embed_lr": 30.0},
    "head-third": {"model.head_lr": 0.15},
    "head-triple": {"model.head_lr": 1.3},
}
# (tokens, width) -> settings tried there, at r = 1 and r = 8
CELLS = {
    (7e5, 32): tuple(SETTINGS),
    (2.8e6, 32): ("start", "matrix-half", "matrix-double"),
    (7e5, 64): ("start", "matrix-half", "matrix-double"),
}
RECURRENCES = (1, 8)


def planned_runs() -> Iterator[PlannedRun]:
    """The runs of every cell; a setting is the recipe of its runs."""
    grid = read_grid(GRID)
    for (tokens, width), settings in CELLS.items():
        for setting in settings:
            content = yaml.safe_load(BASE.read_text())
            content["data"]["data_dir"] = DATA_DIR
            for name, value in (START | SETTINGS[setting]).items():
                section, key = name.split(".")
                content[section][key] = value
            path = OUT / f"{setting}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(yaml.safe_dump(content, sort_keys=False))
            cell = replace(
                grid,
                out=OUT,
                budgets={},
                tokens={tokens: (width,)},
                recurrences=RECURRENCES,
                recipes={"baseline": {}},
                seeds=(0,),
            )
            for run in plan_runs(cell, make_base(path, content)):
                name = run.name.replace(run.recipe, setting, 1)
                yield replace(run, name=name, directory=OUT / name, recipe=setting)


def table(records: list[Record]) -> str:
    """Losses by setting and run, in Markdown; `-` where nothing was trained."""
    columns = [(tokens, width, r) for tokens, width in CELLS for r in RECURRENCES]
    loss = {
        (
            record.recipe,
            record.progress["planned_tokens"],
            record.model["width"],
            record.model["recurrences"],
        ): record.validation[-1].loss
        for record in records
        if record.status == "complete"
    }
    tokens_of = {key[1] for key in loss}
    lines = [
        "| setting | "
        + " | ".join(f"{t / 1e6:g}M, d = {d}, r = {r}" for t, d, r in columns)
        + " |",
        "| --- |" + " --- |" * len(columns),
    ]
    for setting in SETTINGS:
        cells = []
        for tokens, width, r in columns:
            near = [n for n in tokens_of if abs(n - tokens) <= 0.01 * tokens]
            found = [loss.get((setting, n, width, r)) for n in near]
            found = [value for value in found if value is not None]
            cells.append(f"{found[0]:.4f}" if found else "-")
        lines.append(f"| {setting} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Train what is missing when asked to, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", nargs="?", type=Path, default=OUT)
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.train:
        runs = list(planned_runs())
        with Workers(arguments.jobs) as workers, SweepDisplay(Console(), runs) as display:
            run_sweep(what_is_left(runs), workers=workers, observer=display)
    print(table([read_run_file(path) for path in sorted(arguments.records.glob("*/run.json"))]))


if __name__ == "__main__":
    main()
