"""One transformer block: pre-norm attention and squared-ReLU MLP, no biases (DESIGN.md section 2).

    x += O attn(norm_attn(x));   x += Down relu(Up norm_mlp(x))^2

Queries and keys are rotated (RoPE on the two halves of each head), then RMS-normalised per head
without a gain. Shapes: B batch, T tokens, D width, H query heads, G key/value heads, C head_dim.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from looped.architecture import Architecture

NORM_EPS = 1e-6
ROTARY_BASE = 10_000.0

Rotation = tuple[Tensor, Tensor]


def rotation(seq_len: int, head_dim: int, like: Tensor) -> Rotation:
    """Cosine and sine of every position's rotation angles.

    Computed anew in each forward pass, in float64 before the cast: a buffer would keep the
    rounding of the precision it was made in when the model is cast to another.

    Args:
        seq_len: T.
        head_dim: C.
        like: gives device and dtype of the result.

    Returns:
        cos and sin, each (T, 1, C / 2), to broadcast over heads.
    """
    frequencies = ROTARY_BASE ** (
        -torch.arange(0, head_dim, 2, device=like.device, dtype=torch.float64) / head_dim
    )
    positions = torch.arange(seq_len, device=like.device, dtype=torch.float64)
    angles = torch.outer(positions, frequencies)[:, None, :]
    return angles.cos().to(like.dtype), angles.sin().to(like.dtype)


def rotate(x: Tensor, by: Rotation) -> Tensor:
    """Rotate the halves (x1, x2) of each head: y1 = x1 cos + x2 sin, y2 = -x1 sin + x2 cos.

    Args:
        x: (B, T, heads, C).
        by: what `rotation` returns.
    """
    cos, sin = by
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((x1 * cos + x2 * sin, x2 * cos - x1 * sin), dim=-1)


class Block(nn.Module):
    """Attention and MLP on the residual stream."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        d = architecture.width
        kv_width = architecture.kv_heads * architecture.head_dim
        self.head_dim = architecture.head_dim
        self.q = nn.Linear(d, d, bias=False)
        self.k = nn.Linear(d, kv_width, bias=False)
        self.v = nn.Linear(d, kv_width, bias=False)
        self.o = nn.Linear(d, d, bias=False)
        self.up = nn.Linear(d, 4 * d, bias=False)
        self.down = nn.Linear(4 * d, d, bias=False)
        self.norm_attn = nn.RMSNorm(d, eps=NORM_EPS)
        self.norm_mlp = nn.RMSNorm(d, eps=NORM_EPS)

    def forward(self, x: Tensor, by: Rotation) -> Tensor:
        """Residual stream in, residual stream out.

        Args:
            x: (B, T, D).
            by: what `rotation` returns for T.

        Returns:
            (B, T, D).
        """
        x = x + self._attend(self.norm_attn(x), by)
        return x + self._mlp(self.norm_mlp(x))

    def _attend(self, x: Tensor, by: Rotation) -> Tensor:
        q = self._heads(self.q(x))  # (B, T, H, C)
        k = self._heads(self.k(x))  # (B, T, G, C)
        v = self._heads(self.v(x)).transpose(1, 2)
        q = F.rms_norm(rotate(q, by), (self.head_dim,), eps=NORM_EPS).transpose(1, 2).type_as(v)
        k = F.rms_norm(rotate(k, by), (self.head_dim,), eps=NORM_EPS).transpose(1, 2).type_as(v)
        attended = F.scaled_dot_product_attention(  # (B, H, T, C), scale 1 / sqrt(C)
            q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1]
        )
        mixed: Tensor = self.o(attended.transpose(1, 2).flatten(2))
        return mixed

    def _mlp(self, x: Tensor) -> Tensor:
        mixed: Tensor = self.down(F.relu(self.up(x)).square())
        return mixed

    def _heads(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], -1, self.head_dim)
