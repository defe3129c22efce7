"""The bar of a run: what it says, and that it is silent where nobody looks."""

import io
import re
from types import SimpleNamespace

import pytest
from rich.console import Console

from looped.callbacks import training_progress
from looped.callbacks.training_progress import TrainingProgress, progress_note
from looped.training_plan import TrainingPlan

PLAN = TrainingPlan(steps=100, tokens_per_step=1000, flops_per_token=5_000_000)


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=150)


def test_time_left_is_that_of_the_remaining_tokens():
    """75,000 tokens at 500 per second: 150 s; FLOPs are tokens times 5e6."""
    note = progress_note(
        loss=4.21349, tokens_per_s=500.0, tokens=25_000, train_flops=125_000_000_000, plan=PLAN
    )
    assert note == "loss 4.213  500 tokens/s  1.25e+11 of 5.00e+11 FLOPs  2.5 min left"


def test_before_there_is_a_pace_none_is_shown():
    note = progress_note(loss=4.2, tokens_per_s=None, tokens=0, train_flops=0, plan=PLAN)
    assert note == "loss 4.200  0.00e+00 of 5.00e+11 FLOPs"


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_run_on_a_terminal(run, monkeypatch, accumulate):
    """Drawn at every step: the FLOPs and the loss are the run's own, and validation has a bar."""
    monkeypatch.setattr(training_progress, "REFRESH_S", 1e-6)
    console = terminal()
    run.fit(
        steps=6,
        enable_progress_bar=True,
        callbacks=[TrainingProgress(console)],
        accumulate_grad_batches=accumulate,
    )
    text = console.file.getvalue()
    total = run.compute.train_flops
    spent = {float(found) for found in re.findall(r"([\d.e+]+) of", text)}
    assert f"of {total:.2e} FLOPs" in text
    assert max(spent) == float(f"{total:.2e}")
    losses = [float(found) for found in re.findall(r"loss ([\d.]+)", text)]
    assert losses == pytest.approx([3.0] * len(losses), abs=0.2)  # ln 20: nothing is learnt yet
    assert "training" in text
    assert "validation" in text


def test_elsewhere_it_is_silent(run):
    """In a log file a bar would be thousands of lines."""
    console = Console(file=io.StringIO())
    run.fit(steps=3, enable_progress_bar=True, callbacks=[TrainingProgress(console)])
    assert console.file.getvalue() == ""


def test_only_the_first_process_draws():
    console = terminal()
    bar = TrainingProgress(console)
    trainer = SimpleNamespace(is_global_zero=False, num_test_batches=[3])
    bar.on_test_start(trainer, None)
    bar.on_test_batch_end()
    bar.on_test_end(trainer, None)
    assert console.file.getvalue() == ""


def test_an_evaluation_alone_has_a_bar_and_ends_it(run):
    console = terminal()
    bar = TrainingProgress(console)
    run.prepare(steps=3, enable_progress_bar=True, callbacks=[bar])
    run.trainer.validate(run.model, run.data, verbose=False)
    assert "validation" in console.file.getvalue()
    assert bar._progress is None
