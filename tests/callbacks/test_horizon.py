"""A run ends at its planned step with a full validation, and nowhere else."""

import pytest

from looped.errors import UserError
from looped.modules.looped_lm import LoopedLM
from tests.callbacks.conftest import MODEL, SEQ_LEN


@pytest.mark.parametrize("steps", [1, 19, 20, 21, 45])
def test_stops_at_the_planned_step_and_measures_there(run, steps):
    """Inside an epoch (of 20 steps), at its end, after it and in the third."""
    run.fit(steps=steps)
    assert run.trainer.global_step == steps
    assert run.validation.entries[-1].step == steps
    assert run.record.status == "complete"


def test_measures_even_where_epochs_forbid_it(run):
    """check_val_every_n_epoch would let the run end unmeasured."""
    run.fit(steps=3, check_val_every_n_epoch=5)
    assert [entry.step for entry in run.validation.entries] == [3]


def test_the_rate_decays_over_the_horizon(run):
    """The last step is taken at a tenth of the first one's rate."""
    rates = []
    run.prepare(steps=10)
    original = run.model.optimizer_step

    def spy(*args, **kwargs):
        rates.append(run.trainer.optimizers[0].param_groups[0]["lr"])
        return original(*args, **kwargs)

    run.model.optimizer_step = spy
    run.trainer.fit(run.model, run.data)
    assert len(rates) == 10
    assert rates[-1] / rates[0] == pytest.approx(0.1)


def test_a_lower_limit_of_the_user_is_not_completion(run):
    """Stopped at max_steps, the rate has not decayed: no point for the fit."""
    run.fit(steps=10, max_steps=4)
    assert run.trainer.global_step == 4
    assert run.record.status == "stopped"


def test_budget_counts_the_whole_step(run):
    """Steps = budget / (F B) with B over accumulated batches."""
    run.prepare(accumulate_grad_batches=2)
    run.horizon.steps = None
    flops_per_step = run.model.architecture.flops_per_token() * 2 * 2 * SEQ_LEN
    run.horizon.budget_flops = 3.4 * flops_per_step
    run.trainer.fit(run.model, run.data)
    assert run.trainer.global_step == 3
    assert run.compute.train_flops == 3 * flops_per_step


def test_the_plan_is_shown_before_training(run, caplog):
    """Steps, tokens, FLOPs, epochs and time; 20 steps are one epoch here."""
    flops = 10 * 2 * SEQ_LEN * LoopedLM(**MODEL).architecture.flops_per_token()
    run.fit(steps=10)
    (line,) = [r.getMessage() for r in caplog.records if r.getMessage().startswith("Plan:")]
    expected = f"Plan: 10 steps of 16 tokens = 160 tokens, {flops:.3g} FLOPs, 0.50 epochs, about "
    assert line.startswith(expected)


def test_more_than_one_epoch_warns(run):
    """The law assumes fresh tokens."""
    with pytest.warns(UserWarning, match=r"1\.50 epochs over the data"):
        run.fit(steps=30)


def test_two_horizons_are_refused(run):
    run.prepare()
    run.horizon.tokens = 1e6
    with pytest.raises(UserError, match=r"horizon\.tokens and horizon\.steps"):
        run.trainer.fit(run.model, run.data)
    assert not run.directory.exists()


def test_a_module_without_horizon_says_what_is_missing(run):
    with pytest.raises(UserError, match="Horizon"):
        LoopedLM(**MODEL).configure_optimizers()
