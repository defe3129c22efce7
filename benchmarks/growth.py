"""How time and memory of a step grow with r, k, K, d and T, and a fit's time with the runs.

    python benchmarks/growth.py                     three minutes; writes docs/pictures/growth-*.png
    python benchmarks/growth.py --only streams      this figure alone

One figure each: measured seconds of forward and backward against the FLOPs of DESIGN.md section 3,
all at the speed of the figure's last point, and the activations kept for the backward pass against
a straight line. 1-2-1 layers, d = 128, r = 4, T = 256, 1,024 tokens per step, float32, one thread,
unless the figure says otherwise. The fit is that of `looped phi` on the published runs, taken as
often as need be, without intervals.
"""

import argparse
import functools
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import torch
from measuring import in_turns, note, saved_bytes

from looped.modules.looped_transformer import LoopedTransformer
from looped.scaling.fit import fit_law
from looped.scaling.published import published_runs

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
TOKENS, VOCAB, ROUNDS = 1024, 1024, 5
BASE = {
    "width": 128,
    "num_heads": 2,
    "prelude_layers": 1,
    "recurrent_layers": 2,
    "coda_layers": 1,
    "recurrences": 4,
    "vocab_size": VOCAB,
    "seq_len": 256,
}
# argument: what else differs from BASE, its values, what the axis says
SWEEPS: dict[str, tuple[dict[str, Any], tuple[int, ...], str]] = {
    "recurrences": ({}, (1, 2, 4, 8, 16), "recurrences r"),
    "truncation_depth": ({"recurrences": 8}, (1, 2, 4, 6, 8), "truncation depth k, r = 8"),
    "streams": ({}, (1, 2, 3, 4, 6, 8), "streams K (1 = linear injection)"),
    "width": ({}, (64, 128, 256, 384, 512), "width d"),
    "seq_len": ({}, (64, 128, 256, 512, 1024), "row length T, 1,024 tokens per step"),
}


def measured(arguments: dict[str, Any]) -> tuple[float, float, int]:
    """Seconds and kept MiB of one forward and backward, and its FLOPs."""
    torch.manual_seed(0)
    arguments = arguments | {"num_heads": arguments["width"] // 64}
    network = LoopedTransformer(**arguments)
    length = arguments["seq_len"]
    tokens = torch.randint(VOCAB, (TOKENS // length, length))

    def step() -> None:
        network.loss(tokens, tokens).backward()

    seconds = statistics.median(in_turns({"step": step}, rounds=ROUNDS)["step"])
    kept = saved_bytes(lambda: network.loss(tokens, tokens))
    return seconds, kept / 2**20, network.architecture.flops_per_token() * TOKENS


def fit_seconds(counts: Iterable[int]) -> list[float]:
    """Seconds that a fit takes on so many runs: the published ones, as often as need be."""
    published = published_runs().of_recipe("baseline")
    taken = []
    for count in counts:
        rows = [i % len(published) for i in range(count)]
        runs = published.iloc[rows].reset_index(drop=True)
        fit = functools.partial(fit_law, runs)
        taken.append(statistics.median(in_turns({"fit": fit}, rounds=3, warm_up=1)["fit"]))
    return taken


def draw(
    name: str, label: str, xs: Iterable[int], *panels: tuple[str, list[float], list[float]]
) -> None:
    """One figure with a panel for each (what, measured, formula)."""
    xs = list(xs)
    figure, axes = plt.subplots(1, len(panels), figsize=(3.6 * len(panels), 2.8), squeeze=False)
    for axis, (what, points, formula) in zip(axes[0], panels, strict=True):
        axis.plot(xs, formula, color="0.6", label="formula")
        axis.plot(xs, points, "o", label="measured")
        axis.set(xlabel=label, ylabel=what, ylim=(0, None))
        axis.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(PICTURES / f"growth-{name}.png", dpi=80)
    plt.close(figure)


def of_architecture(name: str) -> None:
    """Time and kept activations against one argument of the model."""
    others, values, label = SWEEPS[name]
    results = [measured(BASE | others | {name: value}) for value in values]
    seconds, kept, flops = (list(column) for column in zip(*results, strict=True))
    # the speed is that of the largest point, where overheads matter least
    formula = [f * seconds[-1] / flops[-1] for f in flops]
    draw(
        name,
        label,
        values,
        ("seconds per step", seconds, formula),
        ("kept activations, MiB", kept, straight(values, kept)),
    )
    worst = max(abs(s / f - 1) for s, f in zip(seconds, formula, strict=True))
    note(
        f"growth with {label}, {values[0]} to {values[-1]}",
        f"time {seconds[-1] / seconds[0]:.2f} x (formula {flops[-1] / flops[0]:.2f} x, largest "
        f"deviation {worst:.0%}), kept memory {kept[-1] / kept[0]:.2f} x",
    )


def straight(xs: Iterable[float], ys: list[float]) -> list[float]:
    """The straight line through the first and the last point."""
    xs = list(xs)
    slope = (ys[-1] - ys[0]) / (xs[-1] - xs[0])
    return [ys[0] + slope * (x - xs[0]) for x in xs]


def of_runs() -> None:
    """The fitter's time against the number of runs."""
    counts = (24, 58, 116, 232, 464, 928)
    seconds = fit_seconds(counts)
    draw("runs", "runs fitted", counts, ("seconds per fit", seconds, straight(counts, seconds)))
    note(
        f"growth of a fit with the runs, {counts[0]} to {counts[-1]}",
        f"time {seconds[-1] / seconds[0]:.2f} x (runs {counts[-1] / counts[0]:.1f} x), "
        f"{seconds[-1]:.2f} s at the largest",
    )


def main() -> None:
    """Measure, draw and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=(*SWEEPS, "runs"), default=(*SWEEPS, "runs"))
    torch.set_num_threads(1)
    plt.switch_backend("agg")
    for name in parser.parse_args().only:
        of_runs() if name == "runs" else of_architecture(name)


if __name__ == "__main__":
    main()
