"""What a run leaves behind, also when it does not end well."""

import pytest
import torch
from lightning.pytorch import Callback

from looped.callbacks.run_record import RunRecord
from looped.errors import UserError
from looped.record import read_checkpoint, read_run_file
from looped.source_version import source_version
from tests.callbacks.conftest import SEQ_LEN, RaiseAt


def test_a_complete_run_leaves_one_record_in_both_places(run):
    """run.json and the checkpoint agree, with every section of DESIGN.md filled in."""
    run.fit(steps=6)
    record = read_run_file(run.directory / "run.json")
    in_checkpoint = read_checkpoint(run.last)
    assert in_checkpoint.wall_s >= 0
    in_checkpoint.wall_s = record.wall_s  # the clock goes on between the two
    assert record == in_checkpoint
    assert (record.run, record.recipe, record.status, record.seed) == (
        "run",
        "baseline",
        "complete",
        0,
    )
    architecture = run.model.architecture
    assert record.model == architecture.as_record()
    assert record.params["n_once"] == architecture.parameter_groups().n_once
    assert record.flops["train"] == 96 * architecture.flops_per_token()
    assert record.flops["measured_per_token"] > 0
    assert record.flops["optimizer"] == run.trainer.optimizers[0].matrix_flops() > 0
    assert record.progress == {
        "step": 6,
        "tokens": 6 * 2 * SEQ_LEN,
        "epochs": 6 * 2 / 40,
        "planned_steps": 6,
        "planned_tokens": 6 * 2 * SEQ_LEN,
        "diverged_step": None,
    }
    assert [row["group"] for row in record.optimizer] == ["matrices", "embed", "head", "norms"]
    assert sum(row["parameters"] for row in record.optimizer) == record.params["total"]
    assert record.data["fingerprint"] == "made up"
    assert record.versions["torch"].split("+")[0] == torch.__version__.split("+")[0]
    assert record.versions["looped"] == source_version()


def test_an_exception_leaves_what_was_measured(run):
    """on_train_end is not called then; the entries up to the exception are on disk."""
    with pytest.raises(RuntimeError):
        run.fit(steps=6, validate_every=2, callbacks=[RaiseAt(5)])
    record = read_run_file(run.directory / "run.json")
    assert record.status == "stopped"
    assert [entry.step for entry in record.validation] == [2, 4]


def test_an_error_before_the_first_step_leaves_nothing(run):
    with pytest.raises(UserError):
        run.fit(steps=0.1)
    assert not run.directory.exists()


def test_the_whole_checkpoint_loads_with_weights_only(run):
    """Any class in a callback's state or in the hyperparameters would end a resume."""
    run.fit(steps=2)
    checkpoint = torch.load(run.last, weights_only=True)
    assert checkpoint["hyper_parameters"]["recurrences"] == 2
    assert checkpoint["looped"]["schema"] == 1


def test_the_record_follows_the_training(run):
    """Whoever watches a run reads its progress from run.json while it trains."""
    seen = []

    class Watch(Callback):
        def on_train_batch_end(self, trainer, *_):
            seen.append(read_run_file(run.directory / "run.json").progress["step"])

    run.prepare(steps=4, callbacks=[Watch()])
    run.record.refresh_s = 0.0
    run.trainer.fit(run.model, run.data)
    assert seen == [1, 2, 3, 4]
    seen.clear()
    run.prepare(steps=4, callbacks=[Watch()])
    run.record.refresh_s = 1000.0
    run.trainer.fit(run.model, run.data)
    assert seen == [0, 0, 0, 0]


def test_a_recipe_needs_a_name():
    with pytest.raises(UserError, match="recipe"):
        RunRecord("runs/x", recipe="")
