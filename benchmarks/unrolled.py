"""The network without any trainer: against a plain transformer, and against matrix products alone.

    python benchmarks/unrolled.py        two minutes

Forward and backward of a looped transformer (2-4-2 layers, r = 4) in turns with a plain one of the
same unrolled shape, 20 layers in torch's own `nn.Linear`, `nn.RMSNorm` and SDPA; T = 256, float32,
one thread. The plain one lacks what makes a loop (W, norm_recur: 3 % of the matrix products), which
`injection: none` leaves out too. Then model FLOPs per second (DESIGN.md section 3) against the
speed of this machine's matrix products at the shapes of a block, forward and backward.
"""

import statistics
from collections.abc import Callable

import torch
from measuring import in_turns, median_ratio, note, report
from plain_transformer import PlainTransformer
from torch import nn

from looped.modules.looped_transformer import LoopedTransformer

SEQ_LEN, VOCAB = 256, 1024
SIZES = {128: (2, 4, 20), 512: (8, 4, 7)}  # width: heads, rows, rounds
PLAIN_LIMIT, MATMUL_LIMIT = 0.97, 0.80


def step_of(
    network: LoopedTransformer | PlainTransformer, tokens: torch.Tensor, targets: torch.Tensor
) -> Callable[[], None]:
    """Forward and backward."""

    def step() -> None:
        for parameter in network.parameters():
            parameter.grad = None
        network.loss(tokens, targets).backward()

    return step


def products_of(width: int, rows: int) -> tuple[Callable[[], None], int]:
    """Products of the shapes of a block, forward and both backward ones; and their FLOPs."""
    tokens = rows * SEQ_LEN
    shapes = [(width, width)] * 4 + [(width, 4 * width), (4 * width, width)]
    layers = [
        (torch.randn(tokens, n_in), torch.randn(n_out, n_in), torch.randn(tokens, n_out))
        for n_in, n_out in shapes
    ]

    def products() -> None:
        for x, weight, gradient in layers:
            nn.functional.linear(x, weight)
            gradient @ weight
            gradient.T @ x

    return products, sum(6 * tokens * n_in * n_out for n_in, n_out in shapes)


def compare(width: int) -> None:
    """All ways of one width, in turns."""
    heads, rows, rounds = SIZES[width]
    sizes = {"width": width, "vocab_size": VOCAB, "seq_len": SEQ_LEN}
    tokens = torch.randint(VOCAB, (rows, SEQ_LEN))
    looped = LoopedTransformer(**sizes, num_heads=heads)
    without = LoopedTransformer(**sizes, num_heads=heads, injection="none")
    plain = PlainTransformer(**sizes, heads=heads, layers=20)
    products, product_flops = products_of(width, rows)
    seconds = in_turns(
        {
            "looped": step_of(looped, tokens, tokens),
            "plain": step_of(plain, tokens, tokens),
            "without": step_of(without, tokens, tokens),
            "products": products,
        },
        rounds=rounds,
    )
    ratio = median_ratio(seconds["plain"], seconds["looped"])
    report(
        f"tokens/s of LoopedTransformer / plain transformer, d = {width}",
        f"{ratio:.3f} x ({rows * SEQ_LEN / statistics.median(seconds['looped']):,.0f} tokens/s)",
        f">= {PLAIN_LIMIT} x",
        met=ratio >= PLAIN_LIMIT,
    )
    note(
        f"the same without injection, d = {width}",
        f"{median_ratio(seconds['plain'], seconds['without']):.3f} x",
    )
    flops = looped.architecture.flops_per_token() * rows * SEQ_LEN
    share = median_ratio(seconds["products"], seconds["looped"]) * flops / product_flops
    speed = flops / statistics.median(seconds["looped"])
    shown = f"{share:.2f} ({speed / 1e9:.0f} GFLOP/s)"
    what = f"model FLOPs/s of the speed of matrix products, d = {width}, T = {SEQ_LEN}"
    if width == 512:
        report(what, shown, f">= {MATMUL_LIMIT:.2f}", met=share >= MATMUL_LIMIT)
    else:
        note(what, shown)


def main() -> None:
    """Measure and print."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    for width in SIZES:
        compare(width)


if __name__ == "__main__":
    main()
