"""The validation loss as sums, so that it is exact over ragged batches and over ranks."""

import math

import torch
from torch import Tensor
from torchmetrics import Metric

IGNORED = -100


class TokenLoss(Metric):
    """Total nats, tokens and bytes of what was evaluated.

    Sums, not means: batches of different size weigh by their tokens, ranks are added up exactly
    once, and a NaN stays one.

    Attributes:
        nats: float64 sum of the losses.
        tokens: targets that were not ignored.
        bytes: UTF-8 bytes of those targets; 0 when the data does not tell them.
    """

    nats: Tensor
    tokens: Tensor
    bytes: Tensor

    def __init__(self) -> None:
        super().__init__()
        zero = torch.zeros((), dtype=torch.float64)
        self.add_state("nats", zero, dist_reduce_fx="sum")
        self.add_state("tokens", zero.long(), dist_reduce_fx="sum")
        self.add_state("bytes", zero.long(), dist_reduce_fx="sum")

    def update(self, nats: Tensor, targets: Tensor, token_bytes: Tensor | None = None) -> None:
        """Add one batch.

        Args:
            nats: loss of every target, zero where ignored; any shape.
            targets: token ids of the same shape, -100 where ignored.
            token_bytes: (V,) UTF-8 bytes of each token id, or nothing.
        """
        counted = targets != IGNORED
        self.nats += nats.double().sum()
        self.tokens += counted.sum()
        if token_bytes is not None:
            self.bytes += token_bytes[targets[counted]].sum()

    def compute(self) -> dict[str, float]:
        """Nats per token, perplexity, bits per byte (NaN without bytes), and the token count."""
        loss = (self.nats / self.tokens).item()
        total_bytes = self.bytes.item()
        bits = self.nats.item() / math.log(2)
        return {
            "loss": loss,
            "perplexity": torch.tensor(loss, dtype=torch.float64).exp().item(),
            "bits_per_byte": bits / total_bytes if total_bytes else math.nan,
            "tokens": self.tokens.item(),
        }
