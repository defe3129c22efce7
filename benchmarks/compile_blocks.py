"""What torch.compile per block gains in a training step, and what compiling costs.

    python benchmarks/compile_blocks.py        two minutes on a CPU; on a GPU when there is one

Forward and backward of compiled and plain blocks (2-4-2 layers, r = 4, T = 256) in turns; the cost
is the first step's time, with an empty cache. It pays after cost / gain steps.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable

import torch
from measuring import in_turns, median_ratio, note

from looped.modules.looped_transformer import LoopedTransformer

SEQ_LEN, VOCAB = 256, 1024
SIZES = {128: (2, 4, 20), 512: (8, 4, 5)}  # width: heads, rows, rounds


def stepping(network: LoopedTransformer, tokens: torch.Tensor) -> Callable[[], None]:
    """Forward and backward, to the end."""

    def step() -> None:
        network.zero_grad()
        network.loss(tokens, tokens).backward()
        if tokens.is_cuda:
            torch.cuda.synchronize()

    return step


def measure(width: int, device: str) -> None:
    """One width."""
    heads, rows, rounds = SIZES[width]
    arguments = {"width": width, "num_heads": heads, "vocab_size": VOCAB, "seq_len": SEQ_LEN}
    tokens = torch.randint(VOCAB, (rows, SEQ_LEN), device=device)
    plain = stepping(LoopedTransformer(**arguments).to(device), tokens)
    network = LoopedTransformer(**arguments).to(device)
    network.compile_blocks()
    compiled = stepping(network, tokens)
    started = time.perf_counter()
    compiled()
    first_s = time.perf_counter() - started
    clock = time.process_time if device == "cpu" else time.perf_counter
    seconds = in_turns({"compiled": compiled, "plain": plain}, rounds=rounds, clock=clock)
    ratio = median_ratio(seconds["compiled"], seconds["plain"])
    gain_s = statistics.median(seconds["plain"]) * (1 - ratio)
    pays = f"pays after {first_s / gain_s:,.0f} steps" if gain_s > 0 else "never pays"
    note(
        f"training step with compiled blocks / plain, {device}, d = {width}",
        f"{ratio:.2f} x; compiling {first_s:.0f} s; {pays}",
    )


def main() -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    for device in ["cpu", "cuda"][: 1 + torch.cuda.is_available()]:
        for width in SIZES:
            torch._dynamo.reset()
            with tempfile.TemporaryDirectory() as cache:
                os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
                measure(width, device)


if __name__ == "__main__":
    main()
