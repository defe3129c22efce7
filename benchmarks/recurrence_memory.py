"""Truncation, streams and activation checkpointing: what they save or cost in time and memory.

    python benchmarks/recurrence_memory.py        three minutes

Each in turns with the same network without it: the recurrent part alone (0-2-0 layers), r = 8,
d = 512, T = 256, float32, one thread. Kept memory: distinct storages that autograd keeps from
forward to backward (`saved_tensors_hooks`). Peak memory: all allocations of forward and backward
above what was held before, gradients of the parameters included in that (torch's profiler).
"""

from collections.abc import Callable
from typing import Any

import torch
from measuring import in_turns, median_ratio, note, peak_bytes, report, saved_bytes

from looped.modules.looped_transformer import LoopedTransformer

ROWS, SEQ_LEN, VOCAB, ROUNDS = 4, 256, 1024, 4
RECURRENCES, WIDTH = 8, 512


class Subject:
    """One network and its step."""

    def __init__(self, **arguments: Any) -> None:
        torch.manual_seed(0)
        self.network = LoopedTransformer(
            **{
                "width": WIDTH,
                "num_heads": 8,
                "prelude_layers": 0,
                "recurrent_layers": 2,
                "coda_layers": 0,
                "recurrences": RECURRENCES,
                "vocab_size": VOCAB,
                "seq_len": SEQ_LEN,
            }
            | arguments
        )
        self.tokens = torch.randint(VOCAB, (ROWS, SEQ_LEN))
        self.step()  # makes the gradients, which are then held before and after

    @property
    def flops(self) -> int:
        """Per token."""
        return self.network.architecture.flops_per_token()

    def loss(self) -> torch.Tensor:
        """Forward."""
        return self.network.loss(self.tokens, self.tokens)

    def step(self) -> None:
        """Forward and backward."""
        self.loss().backward()

    def gradients(self) -> list[torch.Tensor]:
        """Of one step."""
        self.network.zero_grad()
        self.step()
        return [p.grad for p in self.network.parameters() if p.grad is not None]


def time_ratio(ours: Callable[[], None], theirs: Callable[[], None]) -> float:
    """Seconds of one step by those of another."""
    seconds = in_turns({"ours": ours, "theirs": theirs}, rounds=ROUNDS, warm_up=1)
    return median_ratio(seconds["ours"], seconds["theirs"])


def kept_ratio(ours: Subject, theirs: Subject) -> tuple[float, str]:
    """Bytes kept for the backward pass, as a ratio and in words."""
    a, b = saved_bytes(ours.loss), saved_bytes(theirs.loss)
    return a / b, f"{a / b:.2f} x ({a / 2**20:.0f} of {b / 2**20:.0f} MiB)"


def peak_ratio(ours: Subject, theirs: Subject) -> tuple[float, str]:
    """Peaks of a step, as a ratio and in words."""
    a, b = peak_bytes(ours.step), peak_bytes(theirs.step)
    return a / b, f"{a / b:.2f} x ({a / 2**20:.0f} of {b / 2**20:.0f} MiB)"


def truncation() -> None:
    """Half of the passes without gradient."""
    full, half = Subject(), Subject(truncation_depth=RECURRENCES // 2)
    ratio, flop_ratio = time_ratio(half.step, full.step), half.flops / full.flops
    report(
        "step time with k = r/2 / full backprop, r = 8",
        f"{ratio:.3f} x",
        f"<= FLOP ratio + 5 % = {flop_ratio:.3f} + 0.05",
        met=ratio <= flop_ratio + 0.05,
    )
    kept, words = kept_ratio(half, full)
    report("kept activations with k = r/2 / full backprop", words, "<= 0.55 x", met=kept <= 0.55)
    peak, words = peak_ratio(half, full)
    report("peak memory of a step with k = r/2 / full", words, "<= 0.55 x", met=peak <= 0.55)


def streams() -> None:
    """K = 2 against the linear injection."""
    linear, two = Subject(), Subject(streams=2)
    ratio = time_ratio(two.step, linear.step)
    report(
        f"step time with K = 2 streams / linear injection, d = {WIDTH}",
        f"{ratio:.3f} x",
        "<= 1.02 x",
        met=ratio <= 1.02,
    )
    per_pass = saved_bytes(two.loss) / RECURRENCES
    none = saved_bytes(Subject(injection="none").loss) / RECURRENCES
    state = ROWS * SEQ_LEN * WIDTH * 4
    # The gradient of alpha and M needs the K streams, that of beta s; u is what the blocks read,
    # which without streams is the state itself.
    extra = (per_pass - none) / state
    report(
        "kept by a pass beyond its blocks, K = 2",
        f"{extra:.2f} states (B T D)",
        "<= K + 1 = 3: K streams, s",
        met=extra <= 3.0,
    )
    note("kept activations, K = 2 / linear injection", kept_ratio(two, linear)[1])
    truncated = Subject(streams=2, truncation_depth=RECURRENCES // 2)
    kept, words = kept_ratio(truncated, two)
    report("kept activations, K = 2 with k = r/2 / full", words, "<= 0.55 x", met=kept <= 0.55)


def checkpointing() -> None:
    """Recurrences computed again in the backward pass."""
    plain, frugal = Subject(), Subject(activation_checkpointing=True)
    ratio = time_ratio(frugal.step, plain.step)
    report(
        "step time with activation checkpointing / without, r = 8",
        f"{ratio:.3f} x",
        "<= 1.40 x",
        met=ratio <= 1.40,
    )
    peak, words = peak_ratio(frugal, plain)
    report("peak memory of a step with checkpointing", words, "<= 0.35 x", met=peak <= 0.35)
    pairs = zip(frugal.gradients(), plain.gradients(), strict=True)
    equal = all(torch.equal(a, b) for a, b in pairs)
    report(
        "gradients with checkpointing", "the same bits" if equal else "others", "equal", met=equal
    )


def main() -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    truncation()
    streams()
    checkpointing()


if __name__ == "__main__":
    main()
