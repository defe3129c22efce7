"""A grid of runs from one YAML (looped/sweeps/grid.py explains it; everything else is its base).

looped sweep plan configs/sweeps/demo.yaml            what would be run, and what it would tell
looped sweep run configs/sweeps/demo.yaml --jobs 2    train it; resume, skip, share
looped sweep status runs/demo                         how far it is
looped sweep design --budget 5e13 --runs 24           which grid tells phi best
"""

import argparse
import contextlib
import importlib
import math
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TypeVar

from looped.commands.output import check_json
from looped.commands.phi import ESTIMATORS

T = TypeVar("T")

LAUNCHERS = ("local", "commands", "slurm")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `looped sweep`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_plan(actions.add_parser("plan", help="show the runs of a grid before training any"))
    _add_run(actions.add_parser("run", help="train the runs of a grid"))
    _add_design(actions.add_parser("design", help="propose the grid that tells phi best"))
    _add_status(actions.add_parser("status", help="show how far a sweep is"))


def run(arguments: argparse.Namespace) -> int:
    """Perform the action; each lives in looped/commands/sweep_<action>.py."""
    check_json(vars(arguments).get("json"))
    action = importlib.import_module(f"looped.commands.sweep_{arguments.action}")
    with _sigterm_as_ctrl_c():
        return int(action.run(arguments))


@contextlib.contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """Let SIGTERM unwind: what an action has in temporary folders or workers is to be cleared."""

    def interrupt(signum: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _add_plan(parser: argparse.ArgumentParser) -> None:
    _add_grids(parser)
    _add_jobs(parser)
    parser.add_argument(
        "--timing",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="train the smallest and the largest run for five seconds each to estimate the time "
        "(default: yes, where the data is there)",
    )
    _add_fix(parser)
    _add_law(parser)
    _add_json(parser)


def _add_run(parser: argparse.ArgumentParser) -> None:
    _add_grids(parser)
    _add_jobs(parser)
    parser.add_argument("--retry", action="store_true", help="try runs again that failed before")
    parser.add_argument(
        "--launcher",
        choices=LAUNCHERS,
        default=LAUNCHERS[0],
        help="local: worker processes here; commands: print one `looped fit` line per run for any "
        "other scheduler; slurm: submit one array, --jobs tasks at a time (default: local)",
    )
    parser.add_argument(
        "--slurm",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="parameter of submitit, such as slurm_partition=gpu, timeout_min=720 or "
        "gpus_per_node=1; may be repeated",
    )


def _add_design(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--budget", type=positive, required=True, help="training FLOPs of all runs together"
    )
    parser.add_argument("--runs", type=whole_from(1), required=True, help="how many runs")
    parser.add_argument(
        "--like",
        type=Path,
        metavar="GRID",
        default=Path("configs/sweeps/demo.yaml"),
        help="grid YAML whose base, depth, heads, recurrences and first recipe to use "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--budgets",
        type=list_of(positive),
        metavar="C,C,...",
        help="training FLOPs that one run may have",
    )
    parser.add_argument(
        "--widths",
        type=list_of(whole_from(1)),
        metavar="D,D,...",
        help="widths that a run may have (default: up to twice "
        "narrower and wider than the predicted best)",
    )
    parser.add_argument(
        "--at_least",
        type=whole_from(0),
        default=2,
        help="runs of each recurrence count, so that r^phi itself can be checked (default: 2)",
    )
    parser.add_argument(
        "--further",
        type=whole_from(0),
        default=5,
        help="how many further runs to look at (default: 5)",
    )
    _add_law(parser)
    _add_json(parser)


def _add_status(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, metavar="DIR", help="the sweep directory")
    parser.add_argument(
        "--estimator", choices=ESTIMATORS, default=ESTIMATORS[0], help="of phi (default: huber)"
    )
    _add_fix(parser)
    _add_law(parser)
    _add_json(parser)


def _add_grids(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "grids",
        nargs="+",
        metavar="GRID",
        type=Path,
        help="grid YAML; several of one base and out are planned and trained as one",
    )


def _add_jobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--jobs",
        type=whole_from(1),
        default=1,
        help="runs at a time; cores and GPUs are divided between them",
    )


def _add_fix(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fix",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="hold phi, alpha, beta or E in the fit of phi; may be repeated",
    )


def _add_law(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--law",
        type=Path,
        metavar="FILE",
        help="JSON of looped phi --json, for the law and the noise to plan with (default: those of "
        "the published runs)",
    )


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", metavar="FILE", help="write JSON; - = standard output")


def positive(text: str) -> float:
    """A number above 0 and finite, as an argument."""
    number = _number(float, text, "a number")
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not positive and finite")
    return number


def whole_from(least: int) -> Callable[[str], int]:
    """The reader of a whole number that is not below another."""

    def read(text: str) -> int:
        number = _number(int, text, "a whole number")
        if number < least:
            raise argparse.ArgumentTypeError(f"{text} is below {least}: choose {least} or more")
        return number

    return read


def list_of(read: Callable[[str], T]) -> Callable[[str], list[T]]:
    """The reader of values with commas between."""
    return lambda text: [read(part) for part in text.split(",")]


def _number(kind: Callable[[str], T], text: str, what: str) -> T:
    try:
        return kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}") from None
