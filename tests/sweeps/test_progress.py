"""What a bar shows, from the files of a run."""

import pytest

from looped.sweeps.progress import last_train_loss, progress_of
from tests.test_record import a_record


def test_pace_is_that_of_this_start(tmp_path):
    """The seconds of earlier starts must not slow the estimate down."""
    progress = {"step": 10, "tokens": 1000, "planned_steps": 40, "planned_tokens": 4000}
    first = a_record(progress=progress, wall_s=500.0, validation=[])
    now = a_record(progress=progress | {"tokens": 2000}, wall_s=505.0, validation=[])
    found = progress_of(now, tmp_path, first=first)
    assert found.tokens_per_s == pytest.approx(200)
    assert found.left_s == pytest.approx(10)
    assert found.loss is None
    assert progress_of(first, tmp_path, first=first).left_s is None


def test_the_newest_loss_of_a_curve(tmp_path):
    """The last row may hold only validation columns, and the file more than is read."""
    path = tmp_path / "metrics.csv"
    assert last_train_loss(path) is None
    rows = "".join(f"{step},{5 - step / 1000},\n" for step in range(2000))
    path.write_text(f"step,train_loss,val_loss\n{rows}2000,,3.5\n")
    assert last_train_loss(path) == pytest.approx(5 - 1.999)
    path.write_text("step,val_loss\n1,2.0\n")
    assert last_train_loss(path) is None
