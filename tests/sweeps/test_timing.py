"""The estimate of a sweep's time."""

import pytest

from looped.errors import UserError
from looped.sweeps import timing
from looped.sweeps.grid import read_grid
from looped.sweeps.plan import plan_sweep
from looped.sweeps.timing import Timing, measure, step_s_between, through
from tests.test_record import a_record


def test_the_line_through_two_steps():
    """Overhead and speed of two measured steps; noise cannot make either negative."""
    line = through([1e9, 3e9], [0.05, 0.07])
    assert line.overhead_s == pytest.approx(0.04)
    assert line.s_per_flop == pytest.approx(1e-11)
    slower_when_smaller = through([1e9, 3e9], [0.08, 0.07])
    assert (slower_when_smaller.s_per_flop, slower_when_smaller.overhead_s) == (0.0, 0.07)
    steep = through([1e9, 3e9], [0.01, 0.07])
    assert steep.overhead_s == pytest.approx(0.0)
    assert steep.s_per_flop * 3e9 == pytest.approx(0.07)
    assert through([2e9], [0.1]) == Timing(overhead_s=0.0, s_per_flop=5e-11)


def test_the_first_steps_do_not_count():
    """A first step that takes as long as a hundred others must not be planned with."""
    first = a_record(progress={"step": 2}, wall_s=15.0)
    last = a_record(progress={"step": 102}, wall_s=20.0)
    assert step_s_between(first, last) == pytest.approx(0.05)
    assert step_s_between(None, first) == pytest.approx(7.5)
    assert step_s_between(first, first) == pytest.approx(7.5)


def test_a_run_is_its_steps_and_its_measurement(write_grid):
    """Ten steps of 4 rows, and 12 validation rows at a third of the cost of a step's 4."""
    run = plan_sweep(read_grid(write_grid()))[0]
    step = Timing(overhead_s=0.5, s_per_flop=0.0)
    assert step.run_s(run, val_rows=None) == pytest.approx(10 * 0.5)
    assert step.run_s(run, val_rows=12) == pytest.approx((10 + 1) * 0.5)


@pytest.mark.slow
def test_training_for_a_moment(write_grid, tmp_path, monkeypatch):
    """Both ends are trained as they would be, and the sweep's directory stays untouched."""
    monkeypatch.setattr(timing, "SECONDS_PER_RUN", 1)
    runs = plan_sweep(read_grid(write_grid(tokens={"6.4e8": [8, 64]})))
    found = measure(runs, jobs=2)
    assert 0 < found.step_s(runs[0]) <= found.step_s(runs[-1]) < 2
    assert not (tmp_path / "sweep").exists()


@pytest.mark.slow
def test_runs_that_cannot_be_tried(write_grid):
    """The error of the run is the reason why the time is not known."""
    grid = write_grid({"data": {"data_dir": "nowhere", "batch_size": 4}})
    with pytest.raises(UserError, match="no prepared data in nowhere"):
        measure(plan_sweep(read_grid(grid))[:1], jobs=1)
