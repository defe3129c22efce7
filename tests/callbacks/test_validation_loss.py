"""Entries are whole measurements at the right steps."""

import math

import pytest
import torch
import torch.nn.functional as F

from looped.callbacks.validation_loss import ValidationLoss
from looped.errors import UserError
from tests.callbacks.conftest import SEQ_LEN, Run


def test_the_entry_is_the_loss_over_all_rows(run):
    """Against one cross-entropy over all validation rows at once, in nats and bits per byte."""
    run.fit(steps=4)
    (entry,) = run.validation.entries
    with torch.no_grad():
        logits = run.model.eval()(run.data.val[:, :-1])
    targets = run.data.val[:, 1:].flatten()
    nats = F.cross_entropy(logits.flatten(0, 1), targets, reduction="sum").item()
    assert entry.loss == pytest.approx(nats / targets.numel(), rel=1e-6)
    assert entry.bits_per_byte == pytest.approx(nats / math.log(2) / targets.sum().item(), rel=1e-6)
    assert entry.tokens_evaluated == 7 * SEQ_LEN
    assert (entry.step, entry.tokens, entry.recurrences) == (4, 4 * 2 * SEQ_LEN, 2)
    assert entry.train_flops == entry.tokens * run.model.architecture.flops_per_token()


@pytest.mark.parametrize("accumulate", [1, 3])
def test_intervals_are_optimizer_steps(run, accumulate):
    """Lightning counts batches: with accumulation it would measure at other steps."""
    run.fit(steps=6, validate_every=2, accumulate_grad_batches=accumulate)
    assert [entry.step for entry in run.validation.entries] == [2, 4, 6]


def test_intervals_run_across_epochs(run):
    """An epoch has 20 steps here; step 24 is in the second."""
    run.fit(steps=26, validate_every=8)
    assert [entry.step for entry in run.validation.entries] == [8, 16, 24, 26]


def test_sanity_check_and_validate_leave_no_entry(run):
    """Two measurements are two entries, with Lightning's sanity check on."""
    run.prepare(steps=4, validate_every=2, num_sanity_val_steps=2)
    run.trainer.validate(run.model, run.data, verbose=False)
    assert run.validation.entries == []
    run.trainer.fit(run.model, run.data)
    assert [entry.step for entry in run.validation.entries] == [2, 4]


def test_entries_survive_a_resume(run):
    run.fit(steps=6, validate_every=2, every_n_steps=2, max_steps=4)
    resumed = Run(run.directory).fit(steps=6, validate_every=2, ckpt_path=run.last)
    assert [entry.step for entry in resumed.validation.entries] == [2, 4, 6]


def test_a_nan_loss_is_null_and_the_run_diverged(run):
    """NaN is no JSON and no point for the fit: the entry says null."""
    run.prepare(steps=1)
    with torch.no_grad():
        run.model.network.norm_final.weight.fill_(float("nan"))
    run.trainer.fit(run.model, run.data)
    assert run.validation.entries[0].loss is None
    assert run.record.status == "diverged"


def test_other_recurrences_only_after_training(run):
    """`validate` measures at another count; `fit` refuses: its loss is what phi is fitted to."""
    with pytest.raises(UserError, match="eval_recurrences 5"):
        run.fit(model={"eval_recurrences": 5})
    run.prepare(model={"eval_recurrences": 5})
    (result,) = run.trainer.validate(run.model, run.data, verbose=False)
    with torch.no_grad():
        logits = run.model.network(run.data.val[:, :-1], recurrences=5)
    expected = F.cross_entropy(logits.flatten(0, 1), run.data.val[:, 1:].flatten()).item()
    assert result["val_loss"] == pytest.approx(expected, rel=1e-6)


def test_a_part_of_the_rows_is_refused(run):
    with pytest.raises(UserError, match=r"limit_val_batches 0\.5"):
        run.fit(limit_val_batches=0.5)
    with pytest.raises(UserError, match="every_n_steps 0"):
        ValidationLoss(every_n_steps=0)


def test_the_test_split_is_measured_the_same_way(run):
    run.fit(steps=2)
    (result,) = run.trainer.test(run.model, run.data, verbose=False)
    assert result["test_loss"] == pytest.approx(run.validation.entries[-1].loss, rel=1e-6)
