"""MuonH with matrices of one shape stacked, against a loop over matrices.

    python benchmarks/muonh_speed.py        one minute

The optimizer step of 10 blocks in turns with the same rule applied to one matrix at a time, and its
share of a training step at the sizes of configs/sweeps/demo.yaml; CPU time, one thread.
"""

import statistics
from collections.abc import Callable

import torch
from measuring import in_turns, median_ratio, note, report

from looped.modules.looped_transformer import LoopedTransformer
from looped.optimizers.learning_rates import LearningRates
from looped.optimizers.muonh import MuonH
from looped.optimizers.recipe import make_optimizer

DEMO_SEQ_LEN, DEMO_ROWS, DEMO_VOCAB = 128, 4, 512


def network_of(width: int, recurrences: int, num_heads: int) -> LoopedTransformer:
    """Effective depth 10, as in the demo's grid."""
    return LoopedTransformer(
        width=width,
        num_heads=num_heads,
        prelude_layers=1,
        recurrent_layers=8 // recurrences,
        coda_layers=1,
        recurrences=recurrences,
        vocab_size=DEMO_VOCAB,
        seq_len=DEMO_SEQ_LEN,
    )


def backward_of(network: LoopedTransformer) -> Callable[[], None]:
    """Forward and backward of the demo's batch."""
    tokens = torch.randint(DEMO_VOCAB, (DEMO_ROWS, DEMO_SEQ_LEN))

    def run() -> None:
        network.zero_grad()
        network.loss(tokens, tokens).backward()

    return run


def stacked(width: int) -> None:
    """One optimizer over all matrices against one for each."""
    network = network_of(width, 1, max(1, width // 64))
    backward_of(network)()
    matrices = [p for p in network.parameters() if p.ndim == 2]
    matrices = [p for p in matrices if p not in {network.embed.weight, network.head.weight}]
    together = MuonH([{"params": matrices, "rule": "muonh", "lr": 0.01}])
    alone = [MuonH([{"params": [p], "rule": "muonh", "lr": 0.01}]) for p in matrices]

    def one_by_one() -> None:
        for optimizer in alone:
            optimizer.step()

    seconds = in_turns({"stack": together.step, "loop": one_by_one}, rounds=30)
    ratio = median_ratio(seconds["loop"], seconds["stack"])
    step_s, flops = statistics.median(seconds["stack"]), together.matrix_flops()
    what = f"MuonH step, {len(matrices)} matrices stacked / one by one, d = {width}"
    shown = f"{ratio:.2f} x faster ({step_s * 1e3:.1f} ms, {flops / step_s / 1e9:.0f} GFLOP/s)"
    if width == 128:
        report(what, shown, ">= 2 x", met=ratio >= 2)
    else:
        note(what, shown)


def share() -> None:
    """The whole optimizer's share of a training step, the largest over the demo's grid."""
    shares: dict[tuple[int, int], float] = {}
    for recurrences in (1, 4, 8):
        for width in (16, 32, 48):
            network = network_of(width, recurrences, width // 16)
            optimizer = make_optimizer(network, LearningRates())
            seconds = in_turns(
                {"backward": backward_of(network), "optimizer": optimizer.step}, rounds=30
            )
            ratio = median_ratio(seconds["optimizer"], seconds["backward"])
            shares[recurrences, width] = ratio / (1 + ratio)
    worst = max(shares, key=lambda size: shares[size])
    shown = ", ".join(f"r{r} d{d} {s:.0%}" for (r, d), s in shares.items())
    report(
        "optimizer's share of a training step at the demo's sizes",
        f"{shares[worst]:.1%} at most ({shown})",
        "<= 15 %",
        met=shares[worst] <= 0.15,
    )


def main() -> None:
    """Measure and print."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    for width in (16, 48, 128):
        stacked(width)
    share()


if __name__ == "__main__":
    main()
