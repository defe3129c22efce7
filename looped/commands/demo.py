"""All of it on this machine's CPU: text, a grid of looped transformers, phi, a page of figures.

Run it in the project's directory: it uses configs/sweeps/demo.yaml. Interrupted, it goes on where
it was when called again.
"""

import argparse
import os
import time
from pathlib import Path

from looped.errors import UserError

DATA_DIR = Path("data/demo")
GRID = Path("configs/sweeps/demo.yaml")
REPORT_DIR = "report"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `looped demo`."""
    parser.add_argument(
        "--jobs",
        type=int,
        default=len(os.sched_getaffinity(0)),
        help="runs at a time (default: one per core, %(default)s here)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Prepare, sweep, fit; each step is skipped when it is already done."""
    from looped import cli
    from looped.sweeps.grid import read_grid
    from looped.sweeps.plan import plan_sweep

    if not GRID.exists():
        raise UserError(f"{GRID} is not here: run the demo in the directory of the project")
    started = time.monotonic()
    grid = read_grid(GRID)
    runs = plan_sweep(grid)
    model = runs[0].architecture
    _say("1/3  text: the standard library of this Python, as tokens")
    prepare = ["prepare", "--source=stdlib", f"--out={DATA_DIR}", f"--seq_len={model.seq_len}"]
    prepare += [f"--tokenizer=bpe:{model.vocab_size}", "--val_fraction=0.01"]
    status = cli.main(prepare)
    if status == 0:
        _say(f"2/3  training: {len(runs)} runs, {arguments.jobs} at a time")
        status = cli.main(["sweep", "run", str(GRID), f"--jobs={arguments.jobs}"])
    if status == 0:
        _say("3/3  phi, from the directories the runs left behind")
        status = cli.main(["phi", str(grid.out), *PHI_OPTIONS])
    if status == 0:
        _say(f"\n{EXPLANATION}\n")
        status = cli.main(["report", str(grid.out), *PHI_OPTIONS, f"--out={grid.out / REPORT_DIR}"])
    if status == 0:
        _say(f"\nTook {(time.monotonic() - started) / 60:.1f} minutes.")
    return status


# The noise at this size is above Huber's published delta, so least squares is the sensible
# estimator. Runs this short are far from the floor E of the loss and cannot tell it.
PHI_OPTIONS = ("--estimator=least_squares", "--fix=E=1")

EXPLANATION = """\
This demonstrates the path, not a result. The interval is wide because these runs spend a
millionth of the published compute: their losses still fall too fast for the law (see the residual
above, against 0.01 nats on the published runs), and they cannot tell the floor E of the loss, which
is held at 1 nat. The published value at full scale is 0.46."""


def _say(text: str) -> None:
    print(text, flush=True)
