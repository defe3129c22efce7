"""Changing the YAML of a sweep that has runs: adding is fine, altering is not."""

import pytest
import yaml

from looped.errors import UserError
from looped.sweeps.grid import read_grid
from looped.sweeps.plan import plan_sweep
from looped.sweeps.sweep_file import (
    SWEEP_FILE,
    check_unchanged,
    register,
    registered_runs,
    runs_beside,
)
from tests.test_record import a_record


def _plan(path):
    return plan_sweep(read_grid(path))


def _register(path, out):
    runs = _plan(path)
    register(path, runs, out=out)
    return runs


def _begin(run):
    run.directory.mkdir(parents=True)
    a_record(status="running").write(run.directory)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "sweep"


def test_the_runs_come_back_from_the_directory(write_grid, out):
    """`looped sweep status DIR` knows the plan without the grid YAML."""
    runs = _register(write_grid(seeds=[0, 1]), out)
    assert registered_runs(out) == runs


def test_added_runs_are_fine(write_grid, out):
    """More widths, budgets, seeds, recipes beside runs that have begun."""
    _begin(_register(write_grid(), out)[0])
    more = {"tokens": {"6.4e2": [8, 16, 24], "1.28e3": [8]}, "seeds": [0, 1]}
    runs = _register(write_grid(**more, recipes={"baseline": {}, "two": {"streams": 2}}), out)
    assert len(registered_runs(out)) == len(runs) == (3 + 1) * 2 * 3


@pytest.mark.parametrize(
    ("base", "grid", "words"),
    [
        ({"data": {"data_dir": "x", "batch_size": 8}}, {}, "tokens per step 128 instead of 64"),
        ({}, {"effective_depth": 6}, "model.recurrent_layers 4 instead of 2"),
        ({"compute": {"convention": "causal"}}, {}, "compute.convention causal instead of None"),
        ({"trainer": {"gradient_clip_val": 1.0}}, {}, "trainer.gradient_clip_val 1.0 instead of"),
    ],
    ids=str,
)
def test_alterations_are_refused_with_the_difference(write_grid, out, base, grid, words):
    """Half a sweep of one experiment and half of another cannot be told apart afterwards."""
    _begin(_register(write_grid(), out)[0])
    before = (out / SWEEP_FILE).read_text()
    path = write_grid(base, **grid)
    for check in (register, check_unchanged):
        with pytest.raises(UserError) as caught:
            check(path, _plan(path), out=out)
        assert words in str(caught.value)
        assert "baseline-r1-d8-D6.4e2-s0" in str(caught.value)
    assert (out / SWEEP_FILE).read_text() == before


def test_runs_that_have_not_begun_may_change(write_grid, out):
    """Nothing is lost by changing a plan."""
    _register(write_grid(), out)
    (run, *_) = _register(write_grid(effective_depth=6), out)
    assert run.architecture.recurrent_layers == 4


def test_a_grid_does_not_forget_what_it_no_longer_lists(write_grid, out):
    """Drop a run that has begun, change the grid, take it up again: still the same experiment."""
    first = _register(write_grid(), out)
    _begin(first[0])
    _register(write_grid(tokens={"1.28e3": [8]}), out)
    assert first[0] in registered_runs(out)
    assert first[1] not in registered_runs(out)  # it had not begun
    _register(write_grid(tokens={"1.28e3": [8]}, seeds=[0, 1]), out)
    altered = write_grid(effective_depth=6)
    with pytest.raises(UserError, match=r"model.recurrent_layers 4 instead of 2"):
        register(altered, _plan(altered), out=out)


def test_how_a_run_is_executed_may_change(write_grid, out):
    """More workers, less memory, other checkpoints, the same tokens per step from other parts."""
    _begin(_register(write_grid(), out)[0])
    base = yaml.safe_load((out.parent / "base.yaml").read_text())
    data = base["data"] | {"batch_size": 2, "num_workers": 1}
    trainer = {"accelerator": "cpu", "accumulate_grad_batches": 2}
    model = base["model"] | {"activation_checkpointing": True}
    changes = {"data": data, "trainer": trainer, "model": model}
    path = write_grid(changes | {"checkpoints": {"every_n_steps": 9}})
    assert _register(path, out)[0].plan.tokens_per_step == 64


def test_grids_that_share_a_directory(write_grid, out, tmp_path):
    """A case study adds its looped runs to the directory of the baseline and shares r = 1."""
    baseline = _register(write_grid(), out)
    _begin(baseline[0])
    other = tmp_path / "case.yaml"
    write_grid(recipes={"two": {"streams": 2}}).rename(other)
    case = _register(other, out)
    assert {run.name for run in registered_runs(out)} == {run.name for run in baseline + case}
    assert len(registered_runs(out)) == 6


def test_directories_without_a_sweep(tmp_path):
    with pytest.raises(UserError, match=r"no sweep in .*start one"):
        registered_runs(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"file: it is no directory; name the `out` of a grid"):
        registered_runs(tmp_path / "file")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("grids: 3", "has no grids"),
        ("grids: {a.yaml: 3}", "an entry is not a grid with its base"),
        ("grids: {a.yaml: {grid: {out: x}}}", "an entry is not a grid with its base"),
        ("grids: {a.yaml: {grid: {out: x}, base: [1]}}", "an entry is not a grid with its base"),
        ("grids: {a.yaml: {grid: {out: x}, base: {}}}", "the key base is missing"),
        ("grids: {}\nearlier: [x]", "no sweep in"),
    ],
)
def test_a_sweep_file_of_others(tmp_path, text, words):
    """Said in words of its own, not in Python's."""
    (tmp_path / SWEEP_FILE).write_text(text)
    with pytest.raises(UserError) as caught:
        registered_runs(tmp_path)
    assert words in str(caught.value)
    assert SWEEP_FILE in str(caught.value)


def test_a_grid_is_one_by_any_path(write_grid, out, monkeypatch):
    """Launched by its relative and its absolute path, a grid must not be remembered twice."""
    path = write_grid()
    _register(path, out)
    monkeypatch.chdir(path.parent)
    smaller = write_grid(tokens={"6.4e2": [8]})
    relative = smaller.relative_to(path.parent)
    assert runs_beside([relative], _plan(relative), out=out) == []
    assert _register(relative, out) == registered_runs(out)
    assert len(yaml.safe_load((out / SWEEP_FILE).read_text())["grids"]) == 1
