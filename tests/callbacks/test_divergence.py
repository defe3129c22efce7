"""A lost run ends, names its step and is no point for the fit."""

import pytest
import torch
from lightning.pytorch import Callback

from looped.callbacks.divergence import Divergence
from looped.record import read_run_file


class SpoilAt(Callback):
    """Makes the loss infinite, or large, from a step on."""

    def __init__(self, step: int, factor: float) -> None:
        self.step, self.factor = step, factor

    def on_train_batch_start(self, trainer, pl_module, *_) -> None:
        if trainer.global_step == self.step:
            original = pl_module.training_step
            pl_module.training_step = lambda *a: original(*a) * self.factor


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_loss_that_is_not_finite_ends_the_run(run, accumulate):
    """The step is exact although the verdict is read only every fifth; then nothing more trains."""
    run.prepare(steps=40, callbacks=[SpoilAt(6, float("inf"))], accumulate_grad_batches=accumulate)
    run.divergence.check_every_n_steps = 5
    with pytest.warns(UserWarning, match="diverged at step"):
        run.trainer.fit(run.model, run.data)
    record = read_run_file(run.directory / "run.json")
    assert record.status == "diverged"
    # under accumulation the first spoilt batch belongs to a step that is not done yet
    assert record.progress["diverged_step"] == (7 if accumulate == 1 else 6)
    assert record.progress["step"] == 10


def test_a_loss_far_above_its_start_for_long_ends_the_run(run):
    """Three times the first loss: lost after `patience` such steps, not before."""
    run.prepare(steps=40, callbacks=[SpoilAt(4, 3.0)])
    run.divergence.patience = 8
    run.divergence.check_every_n_steps = 1
    with pytest.warns(UserWarning, match="diverged at step 12"):
        run.trainer.fit(run.model, run.data)
    assert run.record.status == "diverged"
    assert run.trainer.global_step == 12


def test_a_spike_is_not_divergence(run):
    """A loss above twice its start for fewer steps than the patience changes nothing."""
    run.prepare(steps=20, callbacks=[SpoilAt(4, 3.0), SpoilAt(9, 1 / 3)])
    run.divergence.patience = 6
    run.divergence.check_every_n_steps = 1
    run.trainer.fit(run.model, run.data)
    assert run.record.status == "complete"
    assert run.divergence.step is None


def test_the_verdict_is_found_at_the_end_of_a_short_run(run):
    """A run shorter than the interval must not end as complete."""
    run.prepare(steps=4, callbacks=[SpoilAt(2, float("nan"))])
    with pytest.warns(UserWarning, match="diverged at step 3"):
        run.trainer.fit(run.model, run.data)
    assert run.record.status == "diverged"


def test_counting_continues_after_a_resume():
    """First loss and steps above it are part of the state."""
    divergence = Divergence(patience=10)
    divergence.load_state_dict({"first_loss": 1.0, "above": 9, "step": None})

    class Module:
        device = torch.device("cpu")

    class Strategy:
        @staticmethod
        def reduce_boolean_decision(decision, all):
            return decision

    class Trainer:
        accumulate_grad_batches, global_step, strategy, should_stop = 1, 50, Strategy, False

    divergence.on_train_start(Trainer, Module)
    with pytest.warns(UserWarning, match="step 50"):
        divergence.on_train_batch_end(Trainer, Module, {"loss": torch.tensor(2.5)}, None, 0)
    assert Trainer.should_stop
