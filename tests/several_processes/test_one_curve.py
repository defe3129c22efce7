"""Two processes with a batch each are one run: that of one process with both batches."""

import functools
import itertools

import pytest
import torch

from looped.optimizers.distribution import divide_among_processes
from looped.record import read_checkpoint
from tests.conftest import SEQ_LEN
from tests.several_processes.ragged import expected_loss
from tests.several_processes.training import (
    KINDS,
    ROWS_PER_STEP,
    STEPS,
    STOPPED_AT,
    last_checkpoint,
    load,
    train,
    updates,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def one_process(prepared, tmp_path_factory):
    """The same training in this process; each kind once."""
    return functools.cache(
        lambda **arguments: train(
            tmp_path_factory.mktemp("one_process"), str(prepared), processes=1, **arguments
        )
    )


def assert_same_curve(result, reference, rel: float) -> None:
    assert len(result["losses"]) == len(reference["losses"]) == STEPS
    assert result["losses"] == pytest.approx(reference["losses"], rel=rel)
    assert reference["losses"][0] - reference["losses"][-1] > 1  # it does learn something


def assert_same_bits(result, reference) -> None:
    assert result["weights"].keys() == reference["weights"].keys()
    for name, weight in result["weights"].items():
        assert torch.equal(weight, reference["weights"][name]), name
    assert result["validation"] == reference["validation"]


@pytest.mark.parametrize("strategy", ["ddp", "fsdp2"])
@pytest.mark.parametrize("optimizer", ["muonh", "adamw"])
@pytest.mark.parametrize("kind", KINDS)
def test_two_processes_train_as_one(two_processes, one_process, kind, optimizer, strategy):
    """A gradient summed instead of averaged, or lost in a pass of the loop, bends the curve."""
    result = load(two_processes, f"{kind}-{optimizer}-{strategy}")
    reference = one_process(kind=kind, optimizer=optimizer)
    assert_same_curve(result, reference, rel=1e-6)
    (measured,), (expected,) = result["validation"], reference["validation"]
    assert measured["loss"] == pytest.approx(expected["loss"], rel=1e-6)
    assert measured["tokens_evaluated"] == result["val_rows"] * SEQ_LEN


def test_the_difference_is_rounding(two_processes, one_process):
    """In float64 it shrinks with the rounding, so it is nothing else."""
    result = load(two_processes, "double-ddp")
    assert_same_curve(result, one_process(precision="64-true"), rel=1e-14)


def test_truncation_and_streams_are_other_curves(one_process):
    """Where the loop hardly mattered, the comparisons above could not fail."""
    kinds = ("full", "truncated", "streams")
    curves = {kind: one_process(kind=kind, optimizer="adamw")["losses"] for kind in kinds}
    for a, b in itertools.combinations(kinds, 2):
        assert curves[a] != pytest.approx(curves[b], rel=0.02)


@pytest.mark.parametrize("strategy", ["ddp", "fsdp2"])
def test_accumulation_and_clipping_see_the_whole_gradient(two_processes, one_process, strategy):
    """The norm is that of the averaged gradient, not of one process's batch or shard."""
    result = load(two_processes, f"clipped-{strategy}")
    assert len(result["losses"]) == 2 * STEPS  # one for each batch, as its share of the step's
    clipped = one_process(optimizer="adamw", gradient_clip_val=0.1)
    by_step = [sum(result["losses"][i : i + 2]) for i in range(0, 2 * STEPS, 2)]
    assert by_step == pytest.approx(clipped["losses"], rel=1e-6)
    assert by_step != pytest.approx(one_process(optimizer="adamw")["losses"], rel=1e-4)


@pytest.mark.parametrize("strategy", ["ddp", "fsdp2"])
@pytest.mark.parametrize("optimizer", ["muonh", "adamw"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_processes_agree_to_the_last_bit(two_processes, kind, optimizer, strategy):
    """Weights that drift apart between processes would train two models."""
    name = f"{kind}-{optimizer}-{strategy}"
    assert_same_bits(load(two_processes, name, rank=0), load(two_processes, name, rank=1))


@pytest.mark.parametrize("optimizer", ["muonh", "adamw"])
@pytest.mark.parametrize("kind", KINDS)
def test_sharding_changes_nothing(two_processes, kind, optimizer):
    """The polar factor of a shard is another one: MuonH must see whole matrices."""
    sharded, whole = (
        load(two_processes, f"{kind}-{optimizer}-{strategy}") for strategy in ("fsdp2", "ddp")
    )
    assert_same_bits(sharded, whole)
    assert sharded["losses"] == whole["losses"]


@pytest.mark.parametrize("strategy", ["ddp", "fsdp2"])
def test_counters_count_the_whole_job_once(two_processes, one_process, strategy):
    """Tokens, FLOPs and the optimizer's work of all processes, on each of them, as of one."""
    for rank in (0, 1):
        counters = load(two_processes, f"full-muonh-{strategy}", rank)["counters"]
        assert counters == one_process()["counters"]
    assert counters[0] == STEPS * ROWS_PER_STEP * SEQ_LEN
    record = read_checkpoint(last_checkpoint(two_processes / f"full-muonh-{strategy}"))
    assert record.progress["tokens"] == record.progress["planned_tokens"] == counters[0]


def test_ragged_batches_weigh_by_their_tokens(two_processes):
    """Means over batches, or over processes, would give another figure (pitfalls rows 39, 40)."""
    for rank in (0, 1):
        assert load(two_processes, "ragged", rank) == pytest.approx(expected_loss(), rel=1e-6)


def test_each_matrix_is_orthogonalised_by_one_process(two_processes, one_process):
    """Otherwise every process would do the work of all."""
    matrices = [
        w
        for n, w in one_process()["weights"].items()
        if w.ndim == 2 and n[:4] not in ("embe", "head")
    ]
    done = [load(two_processes, "matrices", rank) for rank in (0, 1)]
    assert sum(done) == STEPS * len(matrices)
    assert max(done) < 0.7 * sum(done)


def test_the_divided_update_is_that_of_one_process(two_processes):
    """Square, wide and tall matrices, one shape of which has fewer matrices than processes."""
    first, second = (load(two_processes, "updates", rank) for rank in (0, 1))
    for a, b, alone in zip(first, second, updates(), strict=True):
        assert torch.equal(a, b)
        torch.testing.assert_close(a, alone, rtol=1e-6, atol=1e-6)


def test_shares_are_put_together_in_order(two_processes):
    """Also where there are fewer matrices than processes, or one has less to do."""
    generator = torch.Generator().manual_seed(7)
    for size in (1, 2, 3):
        stack = torch.randn(size, 4, 6, generator=generator)
        assert torch.equal(divide_among_processes(lambda x: 2 * x, stack), 2 * stack)
        for rank in (0, 1):
            assert torch.equal(load(two_processes, "divided", rank)[size], 2 * stack)


def test_sharding_begins_with_the_weights_of_the_first_process(two_processes):
    """Processes with seeds of their own would otherwise glue two models together."""
    assert_same_bits(load(two_processes, "own-seed-fsdp2"), load(two_processes, "full-muonh-fsdp2"))


@pytest.mark.parametrize(
    ("before", "after"), [("ddp", "fsdp2"), ("fsdp2", "ddp"), ("fsdp2", "fsdp2")]
)
def test_resuming_is_exact_under_either_strategy(two_processes, before, after):
    """Lightning's own loading moves weights by a rounding and mixes up optimizer states."""
    straight = load(two_processes, "full-muonh-ddp")
    for rank in (0, 1):
        resumed = load(two_processes, f"resumed-{before}-{after}", rank)
        assert resumed["losses"] == straight["losses"][STOPPED_AT:]
        assert_same_bits(resumed, straight)
        assert resumed["counters"] == straight["counters"]


def test_a_sharded_checkpoint_is_one_file_for_everybody(two_processes):
    """Whole tensors under the names of an unsharded model, readable without running code."""
    sharded, whole = (
        torch.load(last_checkpoint(two_processes / f"full-muonh-{name}"), weights_only=True)
        for name in ("fsdp2", "ddp")
    )
    assert sharded["state_dict"].keys() == whole["state_dict"].keys()
    for name, weight in whole["state_dict"].items():
        assert torch.equal(sharded["state_dict"][name], weight)


def test_tensor_parallelism_is_refused(two_processes):
    """It would cut matrices in the model without anybody adding up the pieces."""
    assert "tensor_parallel_size 2" in load(two_processes, "refusal")
