"""The loss without logits against the plain one: logits, softcap, torch's own cross-entropy."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from looped.modules import head_loss
from looped.modules.head_loss import mean_nats, nats_of

ROWS, WIDTH, PADDED = 14, 6, 64


def tensors(vocab_size: int = 50, dtype: torch.dtype = torch.float64):
    """Features, head and targets, three of which are ignored."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, ROWS // 2, WIDTH, generator=generator, dtype=dtype, requires_grad=True)
    head = torch.randn(PADDED, WIDTH, generator=generator, dtype=dtype, requires_grad=True)
    targets = torch.randint(vocab_size, (2, ROWS // 2), generator=generator)
    targets[0, 1] = targets[1, 2:4] = -100
    return x, head, targets


def plain(x, head, targets, *, vocab_size, softcap, reduction="mean"):
    z = F.linear(x, head)[..., :vocab_size]
    z = z if z.dtype == torch.float64 else z.float()
    logits = z if softcap is None else softcap * torch.tanh(z / softcap)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction=reduction)


@pytest.mark.parametrize("rows_per_piece", [1, 4, 5, 100])
@pytest.mark.parametrize("softcap", [2.0, None])
@pytest.mark.parametrize("vocab_size", [50, PADDED])
def test_loss_and_gradients_equal_the_plain_ones(monkeypatch, rows_per_piece, softcap, vocab_size):
    """Pieces that miss rows, a lost factor of the cap or a padding that counts shows here."""
    monkeypatch.setattr(head_loss, "CPU_PIECE", rows_per_piece * PADDED)
    how = {"vocab_size": vocab_size, "softcap": softcap}
    x, head, targets = tensors(vocab_size)
    loss, expected = mean_nats(x, head, targets, **how), plain(x, head, targets, **how)
    torch.testing.assert_close(loss, expected, rtol=1e-13, atol=0)
    ours = torch.autograd.grad(3 * loss, (x, head))
    theirs = torch.autograd.grad(3 * expected, (x, head))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-15)
    nats = plain(x, head, targets, **how, reduction="none").view_as(targets)
    torch.testing.assert_close(nats_of(x, head, targets, **how), nats, rtol=1e-13, atol=0)


def test_in_single_precision_a_millionth():
    """At a real vocabulary, float32, several pieces."""
    torch.manual_seed(0)
    x = torch.randn(1, 300, 32, requires_grad=True)
    head = torch.nn.Parameter(torch.randn(32_064, 32))
    targets = torch.randint(32_001, (1, 300))
    how = {"vocab_size": 32_001, "softcap": 15.0}
    loss, expected = mean_nats(x, head, targets, **how), plain(x, head, targets, **how)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    ours = torch.autograd.grad(loss, (x, head))
    for a, b in zip(ours, torch.autograd.grad(expected, (x, head)), strict=True):
        assert (a - b).norm() < 1e-6 * b.norm()


def test_autocast_multiplies_in_bfloat16_and_sums_in_float32():
    """Products as plain autocast makes them; loss and gradients are kept in float32."""
    how = {"vocab_size": 50, "softcap": 15.0}
    x, head, targets = tensors(dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss, expected = mean_nats(x, head, targets, **how), plain(x, head, targets, **how)
        nats = nats_of(x, head, targets, **how)
    assert loss.dtype == nats.dtype == torch.float32
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(nats.sum() / (targets >= 0).sum(), expected)
    assert not math.isclose(loss.item(), plain(x, head, targets, **how).item(), rel_tol=1e-6)
    ours = torch.autograd.grad(loss, (x, head))
    for a, b in zip(ours, torch.autograd.grad(expected, (x, head)), strict=True):
        assert a.dtype == torch.float32
        torch.testing.assert_close(a, b, rtol=0.02, atol=1e-3)


def test_the_gradient_can_be_asked_for_twice():
    x, head, targets = tensors()
    loss = mean_nats(x, head, targets, vocab_size=50, softcap=2.0)
    first = torch.autograd.grad(loss, (x, head), retain_graph=True)
    second = torch.autograd.grad(loss, (x, head))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_nothing_but_ignored_targets_is_not_a_number():
    """As torch's own: a batch without targets has no mean, and must not look like a good one."""
    x, head, targets = tensors()
    ignored = torch.full_like(targets, -100)
    assert mean_nats(x, head, ignored, vocab_size=50, softcap=2.0).isnan()


class LargestTensor(TorchDispatchMode):
    """Notes the elements of the largest tensor that any operation makes."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        sizes = [t.numel() for t in tree_leaves(made) if isinstance(t, torch.Tensor)]
        self.elements = max(self.elements, *sizes, 0)
        return made


def test_no_table_of_all_rows_is_ever_made(monkeypatch):
    """Forward, backward and evaluation stay with pieces; the plain loss would not."""
    monkeypatch.setattr(head_loss, "CPU_PIECE", 3 * PADDED)
    x, head, targets = tensors()
    how = {"vocab_size": 50, "softcap": 2.0}
    with LargestTensor() as ours:
        mean_nats(x, head, targets, **how).backward()
        nats_of(x, head, targets, **how)
    assert ours.elements == head.numel()  # its gradient
    with LargestTensor() as theirs:
        plain(x, head, targets, **how).backward()
    assert theirs.elements == ROWS * PADDED
