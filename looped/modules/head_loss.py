"""Head, softcap and cross-entropy in one, some rows at a time: the logits never exist as a whole.

A cross-entropy on top of plain logits holds the table of rows x vocabulary several times over.
Here each piece of it is turned into loss and gradient where it is made, in place, and forgotten;
nothing is computed twice. With t = tanh(z / c), p = softmax(c t) and y the target:

    nats = log sum_v exp(c t_v) - c t_y;    d nats / d z = (p - onehot(y)) (1 - t^2)

Shapes: N targets, D width, V vocabulary with its padding, which gets no probability.
"""

import math
from typing import Any

import torch
from torch import Tensor

IGNORED = -100  # a target that counts nowhere, as in torch's own cross-entropy

# Elements of one piece in float32: 16 MiB, so that a CPU's caches help; 256 MiB on a GPU, where
# the products must be large to run at full speed.
CPU_PIECE = 2**22
GPU_PIECE = 2**26


def softcapped(z: Tensor, softcap: float | None) -> Tensor:
    """Logits c tanh(z / c); z itself without a cap."""
    return z if softcap is None else softcap * torch.tanh(z / softcap)


def mean_nats(
    x: Tensor, head: Tensor, targets: Tensor, *, vocab_size: int, softcap: float | None
) -> Tensor:
    """Mean cross-entropy of the targets, differentiable once.

    Args:
        x: (..., D), what the head is applied to.
        head: (V, D), its weight.
        targets: (...), token ids; -100 is ignored.
        vocab_size: rows of the head that are no padding.
        softcap: c; null = none.

    Returns:
        Nats per target, a scalar in float32 (float64 for a float64 x).
    """
    loss: Tensor = _MeanNats.apply(x.flatten(0, -2), head, targets.flatten(), vocab_size, softcap)
    return loss


@torch.no_grad()
def nats_of(
    x: Tensor, head: Tensor, targets: Tensor, *, vocab_size: int, softcap: float | None
) -> Tensor:
    """Cross-entropy of every target, without gradient.

    Args:
        x: (..., D), what the head is applied to.
        head: (V, D), its weight.
        targets: (...), token ids; -100 is ignored.
        vocab_size: rows of the head that are no padding.
        softcap: c; null = none.

    Returns:
        Nats, shaped like the targets, zero where ignored.
    """
    factors = _factor_dtype(x)
    x, head = x.flatten(0, -2).to(factors), head.to(factors)
    rows = _rows_per_piece(head)
    pieces = [
        _picked(_log_probabilities(piece @ head.T, vocab_size, softcap)[0], y)
        for piece, y in zip(torch.split(x, rows), torch.split(targets.flatten(), rows), strict=True)
    ]
    return torch.cat(pieces).view_as(targets)


class _MeanNats(torch.autograd.Function):
    """The mean and, made in the same sweep over the rows, its gradients."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, head: Tensor, targets: Tensor, vocab_size: int, softcap: float | None
    ) -> Tensor:
        factors = _factor_dtype(x)
        exact = torch.promote_types(factors, torch.float32)
        left, right = x.to(factors), head.to(factors)
        weights = (targets != IGNORED).to(exact)
        weights /= weights.sum()  # each target's share in the mean
        loss = x.new_zeros((), dtype=exact)
        grad_x = torch.empty_like(left)
        grad_head = torch.zeros_like(head, dtype=exact)
        rows = _rows_per_piece(head)
        for first in range(0, len(left), rows):
            piece = slice(first, first + rows)
            y, weight = targets[piece], weights[piece]
            log_p, t = _log_probabilities(left[piece] @ right.T, vocab_size, softcap)
            loss += (_picked(log_p, y) * weight).sum()
            grad_z = _gradient(log_p, t, y).to(factors)
            weight = weight.to(factors)[:, None]
            torch.mm(grad_z, right, out=grad_x[piece]).mul_(weight)
            _add_product(grad_head, grad_z.T, left[piece] * weight)
        ctx.save_for_backward(grad_x.to(x.dtype), grad_head.to(head.dtype))
        return loss

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (grad_loss,) = grad_outputs
        grad_x, grad_head = ctx.saved_tensors
        # out of place: what is saved may be asked for again (retain_graph)
        return grad_x * grad_loss.to(grad_x.dtype), grad_head * grad_loss, None, None, None


def _factor_dtype(x: Tensor) -> torch.dtype:
    """What the head's products are made of: as autocast would have it, else x's own."""
    device = x.device.type
    if not torch.amp.is_autocast_available(device) or not torch.is_autocast_enabled(device):
        return x.dtype
    return x.dtype if x.dtype == torch.float64 else torch.get_autocast_dtype(device)


def _rows_per_piece(head: Tensor) -> int:
    return max(1, (GPU_PIECE if head.is_cuda else CPU_PIECE) // len(head))


def _log_probabilities(
    z: Tensor, vocab_size: int, softcap: float | None
) -> tuple[Tensor, Tensor | None]:
    """Log-softmax of the softcapped logits, and the t of the cap; z (N, V) is overwritten."""
    z = z if z.dtype == torch.float64 else z.float()
    t = None if softcap is None else z.div_(softcap).tanh_()
    logits = z if softcap is None else z * softcap
    logits[:, vocab_size:] = -math.inf
    return logits.log_softmax(-1), t


def _picked(log_p: Tensor, targets: Tensor) -> Tensor:
    """Nats of each target, zero where ignored."""
    nats = -log_p.gather(1, targets.clamp(min=0)[:, None])[:, 0]
    return nats.where(targets != IGNORED, 0.0)


def _gradient(log_p: Tensor, t: Tensor | None, targets: Tensor) -> Tensor:
    """The d nats / d z of every row, those of ignored targets included; overwrites log_p and t."""
    places = targets.clamp(min=0)[:, None]
    grad = log_p.exp_()
    grad.scatter_add_(1, places, torch.full_like(places, -1, dtype=grad.dtype))
    return grad if t is None else grad.addcmul_(grad, t.square_(), value=-1)


def _add_product(total: Tensor, a: Tensor, b: Tensor) -> None:
    """Add a @ b to a total that may be of higher precision."""
    if total.dtype == a.dtype:
        torch.addmm(total, a, b, out=total)  # not addmm_, which torch's FLOP counter overlooks
    else:
        total += a @ b
