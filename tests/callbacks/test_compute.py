"""The ledger: exact integers, batch by batch, unbroken by a resume."""

import pytest

from looped.callbacks.compute import Compute
from looped.errors import UserError
from tests.callbacks.conftest import SEQ_LEN, RaiseAt, Run


def test_tokens_and_flops_as_executed(run):
    """6 steps of 2 rows of 8 targets; FLOPs are tokens times the formula, as integers."""
    run.fit(steps=6)
    assert run.compute.tokens == 6 * 2 * SEQ_LEN
    assert run.compute.train_flops == 96 * run.model.architecture.flops_per_token()
    assert type(run.compute.train_flops) is int


def test_accumulated_batches_count_each(run, tmp_path):
    """Two batches of two rows per step cost what one batch of four does."""
    run.fit(steps=3, accumulate_grad_batches=2)
    other = Run(tmp_path / "other").fit(steps=3, batch_size=4)
    assert run.trainer.global_step == other.trainer.global_step == 3
    assert run.compute.tokens == other.compute.tokens == 3 * 4 * SEQ_LEN


def test_counters_continue_after_a_resume(run, tmp_path):
    """Stopped at 4 and resumed, a run counts what a straight one does (a stateless counter: 2)."""
    with pytest.raises(RuntimeError, match="plug"):
        run.fit(steps=6, every_n_steps=2, callbacks=[RaiseAt(5)])
    wall_s = run.compute.wall_s
    resumed = Run(run.directory).fit(steps=6, ckpt_path=run.last)
    assert resumed.compute.tokens == 6 * 2 * SEQ_LEN
    assert resumed.compute.train_flops == 96 * run.model.architecture.flops_per_token()
    assert resumed.compute.wall_s > 0
    assert wall_s > 0


def test_a_large_count_still_moves():
    """Beyond 2^24 a float32 sum would stand still."""
    compute = Compute()
    compute.load_state_dict({"tokens": 2**60, "train_flops": 2**70, "wall_s": 0.0})
    compute.tokens += 1
    assert compute.state_dict()["tokens"] == 2**60 + 1


def test_causal_convention_by_name(run, tmp_path):
    run.prepare(steps=2)
    run.compute.convention = "causal"
    run.trainer.fit(run.model, run.data)
    assert run.compute.flops_per_token == run.model.architecture.flops_per_token("causal")
    with pytest.raises(UserError, match="'fast'"):
        Compute("fast")
