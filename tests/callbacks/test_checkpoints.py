"""Checkpoints hold the counters of their step, are few, and never half-written."""

import pytest
import torch

from looped.callbacks.checkpoints import Checkpoints
from looped.errors import UserError
from looped.record import read_checkpoint
from tests.callbacks.conftest import SEQ_LEN, RaiseAt, Run


def names(run: Run) -> list[str]:
    return sorted(path.name for path in (run.directory / "checkpoints").iterdir())


def test_a_checkpoint_of_step_n_holds_the_counters_of_step_n(run):
    """Lightning must run the writer after the counters, wherever it stands in the list."""
    with pytest.raises(RuntimeError):
        run.fit(steps=9, every_n_steps=4, callbacks=[RaiseAt(5)])
    record = read_checkpoint(run.last)
    assert record.progress["step"] == 4
    assert record.progress["tokens"] == 4 * 2 * SEQ_LEN
    assert record.status == "running"


def test_only_the_newest_are_kept_and_last_links_to_them(run):
    run.fit(steps=9, every_n_steps=2, keep=2)
    assert names(run) == ["last.ckpt", "step=00000008.ckpt", "step=00000009.ckpt"]
    assert run.last.readlink().name == "step=00000009.ckpt"
    moved = run.directory.rename(run.directory.with_name("moved"))
    assert read_checkpoint(moved / "checkpoints" / "last.ckpt").status == "complete"


def test_nothing_is_written_between_the_last_step_and_its_validation(run):
    """A checkpoint there would resume into a run that is over but was never measured."""

    class PlugAtValidation(RaiseAt):
        def on_validation_start(self, trainer, *_):
            raise RuntimeError("pulled the plug")

    with pytest.raises(RuntimeError):
        run.fit(steps=6, every_n_steps=3, callbacks=[PlugAtValidation(0)])
    assert names(run) == ["last.ckpt", "step=00000003.ckpt"]
    resumed = Run(run.directory).fit(steps=6, ckpt_path=run.last)
    assert resumed.record.status == "complete"


def test_accumulation_saves_each_step_once(run, monkeypatch):
    """Within a step several batches end at the same global step."""
    written = []
    original = Checkpoints.save

    def spy(self, trainer):
        written.append(trainer.global_step)
        original(self, trainer)

    monkeypatch.setattr(Checkpoints, "save", spy)
    run.fit(steps=6, every_n_steps=2, accumulate_grad_batches=3)
    assert written == [2, 4, 6]


def test_a_failed_write_leaves_the_previous_checkpoint(run, monkeypatch):
    """A full disk ends the run; what was there before is intact and nothing half-written counts."""
    original = torch.save
    calls = []

    def full_disk(*args, **kwargs):
        calls.append(args)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return original(*args, **kwargs)

    monkeypatch.setattr(torch, "save", full_disk)
    with pytest.raises(UserError, match="No space left on device; the earlier one is intact"):
        run.fit(steps=6, every_n_steps=2)
    assert read_checkpoint(run.last).progress["step"] == 2
    assert names(run) == ["last.ckpt", "step=00000002.ckpt"]


def test_a_checkpoint_that_does_not_read_back_is_no_checkpoint(run, monkeypatch):
    """A disk that swallows bytes without an error must not replace a good checkpoint."""
    original = torch.save
    calls = []

    def swallow(content, target, *args, **kwargs):
        original(content, target, *args, **kwargs)
        calls.append(target)
        if len(calls) > 1:
            target.seek(100)
            target.truncate()

    monkeypatch.setattr(torch, "save", swallow)
    with pytest.raises(UserError, match="truncated or damaged"):
        run.fit(steps=6, every_n_steps=2)
    assert names(run) == ["last.ckpt", "step=00000002.ckpt"]


@pytest.mark.parametrize("arguments", [{"every_n_steps": 0}, {"keep": 0}], ids=str)
def test_impossible_arguments(arguments):
    with pytest.raises(UserError, match="is below 1"):
        Checkpoints(**arguments)
