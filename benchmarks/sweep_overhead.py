"""What `looped sweep run` adds to the training of many tiny runs.

    python benchmarks/sweep_overhead.py        two minutes

Twelve runs of the demo's kind, some seconds each, two at a time, against half the sum of the
training times that the runs' own records tell (`wall_s`: first step to final validation). On top
come starting the workers and setting up and ending each run.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml
from measuring import report

from looped.record import read_run_file

LIMIT, JOBS, RUNS = 1.25, 2, 12
ROOT = Path(__file__).resolve().parents[1]


def looped(*arguments: str) -> None:
    """Run a command."""
    subprocess.run([sys.executable, "-m", "looped", *arguments], check=True, cwd=ROOT)


def grid(directory: Path) -> Path:
    """Three recurrence counts x four widths of the demo, 400 steps each."""
    base = yaml.safe_load((ROOT / "configs" / "demo.yaml").read_text())
    base["data"]["data_dir"] = str(directory / "data")
    sweep = yaml.safe_load((ROOT / "configs" / "sweeps" / "demo.yaml").read_text())
    sweep |= {"base": str(directory / "base.yaml"), "out": str(directory / "out")}
    sweep["tokens"] = {"2.048e5": [16, 32, 48, 64]}
    (directory / "base.yaml").write_text(yaml.safe_dump(base))
    (directory / "grid.yaml").write_text(yaml.safe_dump(sweep))
    return directory / "grid.yaml"


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        path = grid(Path(folder))
        prepare = ["--source", "stdlib", "--seq_len", "128", "--tokenizer", "bpe:512"]
        looped("prepare", *prepare, "--out", f"{folder}/data", "--val_fraction", "0.01")
        started = time.perf_counter()
        looped("sweep", "run", str(path), "--jobs", str(JOBS))
        elapsed_s = time.perf_counter() - started
        files = sorted(Path(folder, "out").glob("*/run.json"))
        assert len(files) == RUNS
        ideal_s = sum(read_run_file(file).wall_s for file in files) / JOBS
    report(
        f"looped sweep run of {RUNS} tiny runs / their training times / {JOBS}",
        f"{elapsed_s / ideal_s:.2f} x ({elapsed_s:.0f} of {ideal_s:.0f} s)",
        f"<= {LIMIT} x",
        met=elapsed_s / ideal_s <= LIMIT,
    )


if __name__ == "__main__":
    main()
