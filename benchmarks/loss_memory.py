"""Head and loss without the logits, against plain logits and a cross-entropy.

    python benchmarks/loss_memory.py        one minute

V = 32,000, T = 2,048, one row, d = 512, float32, one thread: peak memory of forward and backward of
head, softcap and loss (all allocations above what was held before, by torch's profiler; gradients
included), their time in turns, and how far loss and gradients differ.
"""

import torch
import torch.nn.functional as F
from measuring import in_turns, median_ratio, note, peak_bytes, report

from looped.modules.head_loss import mean_nats, softcapped

VOCAB, SEQ_LEN, WIDTH, SOFTCAP = 32_000, 2_048, 512, 15.0


def main() -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.randn(1, SEQ_LEN, WIDTH, requires_grad=True)
    head = torch.nn.Parameter(torch.randn(VOCAB, WIDTH) / WIDTH**0.5)
    targets = torch.randint(VOCAB, (1, SEQ_LEN))

    def ours() -> list[torch.Tensor]:
        x.grad = head.grad = None
        loss = mean_nats(x, head, targets, vocab_size=VOCAB, softcap=SOFTCAP)
        return [loss, *torch.autograd.grad(loss, (x, head))]

    def plain() -> list[torch.Tensor]:
        logits = softcapped(F.linear(x, head), SOFTCAP)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return [loss, *torch.autograd.grad(loss, (x, head))]

    difference = max(
        ((a - b).norm() / b.norm()).item() for a, b in zip(ours(), plain(), strict=True)
    )
    report("loss and gradients, difference", f"{difference:.1e}", "<= 1e-6", met=difference <= 1e-6)
    a, b = peak_bytes(ours), peak_bytes(plain)
    report(
        f"peak memory of head and loss, V = {VOCAB:,}, T = {SEQ_LEN:,}",
        f"{a / b:.2f} x ({a / 2**20:.0f} of {b / 2**20:.0f} MiB)",
        "<= 0.50 x",
        met=a / b <= 0.5,
    )
    seconds = in_turns({"ours": ours, "plain": plain}, rounds=4, warm_up=1)
    note("time of head and loss", f"{median_ratio(seconds['ours'], seconds['plain']):.2f} x")


if __name__ == "__main__":
    main()
