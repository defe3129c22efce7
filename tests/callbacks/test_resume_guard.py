"""A resumed run is the same experiment, or is refused with every difference named."""

import pytest
import torch

from looped.callbacks.resume_guard import ResumeGuard
from looped.errors import UserError
from tests.callbacks.conftest import Run


def resume(run: Run, *, allow_changes: bool = False, **changes) -> Run:
    guard = ResumeGuard(allow_changes=allow_changes)
    arguments = {"steps": 6, "callbacks": [guard]} | changes
    return Run(run.directory).fit(ckpt_path=run.last, **arguments)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steps": 8}, "planned steps 8 instead of 6"),
        ({"batch_size": 4}, "planned tokens 192 instead of 96"),
        ({"model": {"norm_lr": 0.5}}, "model.norm_lr 0.5 instead of 0.005"),
        ({"model": {"truncation_depth": 1}}, "model.truncation_depth 1 instead of None"),
    ],
    ids=str,
)
def test_another_experiment_is_refused_and_named(run, changes, words):
    run.fit(steps=6, max_steps=4)
    before = (run.directory / "run.json").read_bytes()
    with pytest.raises(UserError, match=words):
        resume(run, **changes)
    assert (run.directory / "run.json").read_bytes() == before


def test_insisting_goes_on_with_the_new_values(run):
    run.fit(steps=6, max_steps=4)
    with pytest.warns(UserWarning, match="another experiment: planned steps 8"):
        resumed = resume(run, allow_changes=True, steps=8)
    assert resumed.trainer.global_step == 8


def test_the_same_experiment_resumes(run):
    run.fit(steps=6, max_steps=4)
    assert resume(run).record.status == "complete"


def test_a_resume_may_switch_activation_checkpointing(run):
    """It is how a run is computed, not what it learns."""
    run.fit(steps=6, max_steps=4)
    resumed = resume(run, model={"activation_checkpointing": True})
    assert resumed.model.network.activation_checkpointing
    assert resumed.record.status == "complete"


def test_arguments_of_an_older_version_do_not_stop_a_resume(run):
    """A constructor argument that is gone, or was not there yet, is no difference."""
    run.fit(steps=6, max_steps=4)
    checkpoint = torch.load(run.last, weights_only=True)
    checkpoint["hyper_parameters"]["gone"] = 1
    del checkpoint["hyper_parameters"]["schedule"]
    torch.save(checkpoint, run.last)
    assert resume(run).record.status == "complete"


def test_evaluation_is_not_guarded(run):
    """`validate` may look at a checkpoint with another horizon or recurrence count."""
    run.fit(steps=6)
    run.prepare(steps=9, callbacks=[ResumeGuard()], model={"eval_recurrences": 3})
    run.trainer.validate(run.model, run.data, ckpt_path=run.last, verbose=False)
