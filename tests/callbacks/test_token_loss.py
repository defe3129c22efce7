"""Sums of nats, tokens and bytes against torch's own cross-entropy."""

import math

import pytest
import torch
import torch.multiprocessing as mp
from torch import distributed

from looped.callbacks.token_loss import TokenLoss


def a_batch(rows: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    targets = torch.randint(11, (rows, 6), generator=generator)
    return torch.rand(rows, 6, generator=generator), targets


def test_ragged_batches_equal_one_big_one():
    """A mean of batch means would weigh the short batch too much."""
    metric, token_bytes = TokenLoss(), torch.arange(11)
    batches = [a_batch(rows, seed) for seed, rows in enumerate((4, 4, 1))]
    for nats, targets in batches:
        metric.update(nats, targets, token_bytes)
    nats = torch.cat([n for n, _ in batches]).double()
    total_bytes = sum(t.sum().item() for _, t in batches)
    result = metric.compute()
    assert result["loss"] == pytest.approx(nats.mean().item(), rel=1e-12)
    assert result["tokens"] == 54
    assert result["perplexity"] == pytest.approx(math.exp(nats.mean().item()))
    assert result["bits_per_byte"] == pytest.approx(nats.sum().item() / math.log(2) / total_bytes)


def test_ignored_targets_do_not_count():
    nats, targets = a_batch(2, 0)
    targets[0] = -100
    nats[0] = 0
    metric = TokenLoss()
    metric.update(nats, targets)
    assert metric.compute()["loss"] == pytest.approx(nats[1].double().mean().item())
    assert math.isnan(metric.compute()["bits_per_byte"])


def test_a_nan_surfaces():
    """Torchmetrics' own mean would drop it and look healthy."""
    nats, targets = a_batch(2, 0)
    nats[0, 0] = float("nan")
    metric = TokenLoss()
    metric.update(nats, targets)
    metric.update(*a_batch(2, 1))
    assert math.isnan(metric.compute()["loss"])


def test_small_losses_are_not_lost_in_a_large_sum():
    """A float32 sum stands still at 2^24."""
    metric = TokenLoss()
    metric.update(torch.tensor([2.0**24]), torch.tensor([1]))
    for _ in range(3):
        metric.update(torch.ones(1), torch.tensor([1]))
    assert metric.compute()["loss"] == (2.0**24 + 3) / 4


def _rank(rank: int, store: str, results: str) -> None:
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    metric = TokenLoss()
    metric.update(*a_batch(5 if rank == 0 else 1, rank))
    torch.save(metric.compute(), f"{results}/{rank}.pt")
    distributed.destroy_process_group()


def test_two_ranks_with_uneven_batches(tmp_path):
    """The loss is the token-weighted mean over ranks, the same on both."""
    mp.spawn(_rank, (str(tmp_path / "store"), str(tmp_path)), nprocs=2)
    nats = torch.cat([a_batch(5, 0)[0], a_batch(1, 1)[0]]).double()
    for rank in (0, 1):
        result = torch.load(tmp_path / f"{rank}.pt")
        assert result["loss"] == pytest.approx(nats.mean().item(), rel=1e-12)
        assert result["tokens"] == 36
