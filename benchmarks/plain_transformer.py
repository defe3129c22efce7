"""A plain transformer of unrolled shape, in torch's own layers: what looped is measured against.

The same mathematics as looped/modules, without a loop: pre-norm blocks, rotary positions, normed
queries and keys, squared ReLU, softcapped logits. Every pass of the loop is blocks of its own here.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class PlainBlock(nn.Module):
    """Attention and MLP as one would write them down."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.query, self.key, self.value, self.out = (
            nn.Linear(width, width, bias=False) for _ in range(4)
        )
        self.wide = nn.Linear(width, 4 * width, bias=False)
        self.narrow = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """(B, T, D) in and out."""
        batch, length, width = x.shape
        y = self.norm1(x)
        q, k, v = (
            layer(y).view(batch, length, self.heads, -1).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        q, k = (F.rms_norm(turned(z, cos, sin), (z.shape[-1],)) for z in (q, k))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(F.relu(self.wide(self.norm2(x))) ** 2)


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions on (B, H, T, C)."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((second, -first), dim=-1) * sin


class PlainTransformer(nn.Module):
    """`layers` blocks between an embedding and a head."""

    def __init__(
        self, *, width: int, heads: int, layers: int, vocab_size: int, seq_len: int
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocab_size, width)
        self.blocks = nn.ModuleList(PlainBlock(width, heads) for _ in range(layers))
        self.norm0, self.norm = nn.RMSNorm(width), nn.RMSNorm(width)
        self.head = nn.Linear(width, vocab_size, bias=False)
        size = width // heads
        angles = torch.arange(seq_len)[:, None] * 1e4 ** (-torch.arange(0, size, 2) / size)
        self.register_buffer("cos", torch.cat((angles, angles), -1).cos())
        self.register_buffer("sin", torch.cat((angles, angles), -1).sin())

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (B, T, V)."""
        x = self.norm0(self.embed(tokens))
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return 15 * torch.tanh(self.head(self.norm(x)) / 15)

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy."""
        return F.cross_entropy(self(tokens).flatten(0, 1), targets.flatten())
