"""From a grid to runs: every cell once, the same depth everywhere, in a useful order."""

import pytest

from looped.errors import UserError
from looped.sweeps.grid import read_grid
from looped.sweeps.plan import plan_sweep


def test_every_cell_once_in_order(write_grid):
    """Small horizons first, all recurrence counts of a width side by side."""
    grid = write_grid(tokens={"2e3": [8], "1e3": [16, 8]}, seeds=[0, 1])
    names = [run.name for run in plan_sweep(read_grid(grid))]
    assert names == [
        "baseline-r1-d8-D1e3-s0",
        "baseline-r2-d8-D1e3-s0",
        "baseline-r1-d16-D1e3-s0",
        "baseline-r2-d16-D1e3-s0",
        "baseline-r1-d8-D1e3-s1",
        "baseline-r2-d8-D1e3-s1",
        "baseline-r1-d16-D1e3-s1",
        "baseline-r2-d16-D1e3-s1",
        "baseline-r1-d8-D2e3-s0",
        "baseline-r2-d8-D2e3-s0",
        "baseline-r1-d8-D2e3-s1",
        "baseline-r2-d8-D2e3-s1",
    ]


def test_runs_differ_in_sharing_alone(write_grid):
    """Every run has the effective depth; r = 1 has one pass of all looping layers."""
    runs = plan_sweep(read_grid(write_grid(effective_depth=10, recurrences=[1, 2, 4, 8])))
    assert {run.architecture.effective_depth for run in runs} == {10}
    layers = {run.architecture.recurrences: run.architecture.recurrent_layers for run in runs}
    assert layers == {1: 8, 2: 4, 4: 2, 8: 1}
    assert {run.architecture.head_dim for run in runs} == {8}
    assert runs[0].architecture.vocab_size == 300  # from the base configuration


def test_recipes_share_the_plain_runs(write_grid):
    """R = 1 is run once for all recipes; half means ceil(r / 2)."""
    grid = write_grid(
        effective_depth=10,
        recurrences=[1, 2, 8],
        recipes={"baseline": {}, "cut": {"truncation_depth": "half"}, "two": {"streams": 2}},
    )
    runs = [run for run in plan_sweep(read_grid(grid)) if run.architecture.width == 8]
    assert [(run.recipe, run.architecture.recurrences) for run in runs] == [
        ("baseline", 1),
        ("baseline", 2),
        ("cut", 2),
        ("two", 2),
        ("baseline", 8),
        ("cut", 8),
        ("two", 8),
    ]
    cut = [run.architecture for run in runs if run.recipe == "cut"]
    assert [a.truncation_depth for a in cut] == [1, 4]
    assert all(run.architecture.streams == 2 for run in runs if run.recipe == "two")


def test_the_plain_runs_of_a_case_study_are_the_baselines(write_grid):
    """Another name, and a grid of case studies would train the r = 1 runs a second time."""
    grid = write_grid(effective_depth=10, recipes={"cut": {"truncation_depth": "half"}})
    names = [run.name for run in plan_sweep(read_grid(grid))]
    assert names[:2] == ["baseline-r1-d8-D6.4e2-s0", "cut-r2-d8-D6.4e2-s0"]


def test_the_head_dimension_of_the_base(write_grid):
    """Without head_dim in the grid the base's heads are kept."""
    runs = plan_sweep(read_grid(write_grid(head_dim=None)))
    assert {run.architecture.head_dim for run in runs} == {8}


def test_steps_are_those_of_the_run_itself(write_grid):
    """Rows per step: batch x accumulated batches x devices x nodes; the budget in FLOPs."""
    trainer = {"accumulate_grad_batches": 3, "devices": 2, "num_nodes": 2}
    grid = write_grid({"trainer": trainer}, tokens=None, budgets={"1e9": [8]})
    run = plan_sweep(read_grid(grid))[0]
    assert run.plan.tokens_per_step == 4 * 3 * 2 * 2 * 16
    flops = run.architecture.flops_per_token()
    assert run.plan.steps == round(1e9 / (flops * run.plan.tokens_per_step))
    assert not run.base.one_process


@pytest.mark.parametrize(
    ("trainer", "alone"),
    [
        ({"accelerator": "cpu"}, True),
        ({"devices": 1}, True),
        ({"devices": 1, "strategy": "auto"}, True),
        ({"devices": "0,1"}, False),
        ({"devices": [0, 1]}, False),
        ({"accelerator": "gpu"}, False),
        ({"devices": 1, "strategy": "ddp"}, False),
        ({"devices": 1, "num_nodes": 2}, False),
    ],
    ids=str,
)
def test_which_runs_need_a_process_of_their_own(write_grid, trainer, alone):
    """Lightning starts the command line again per process: a worker must not be that command."""
    assert plan_sweep(read_grid(write_grid({"trainer": trainer})))[0].base.one_process is alone


def test_fit_arguments_replace_the_horizon_of_the_base(write_grid):
    """The base has its own horizon: it must not stand beside the sweep's."""
    run = plan_sweep(read_grid(write_grid()))[1]
    arguments = run.fit_arguments
    assert "--horizon.steps=null" in arguments
    assert "--horizon.tokens=640" in arguments
    assert "--model.recurrences=2" in arguments
    assert f"--run.dir={run.directory}" in arguments


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"effective_depth": 5, "recurrences": [1, 2]}, "3 looping layers do not divide into 2"),
        ({"effective_depth": 2}, "0 looping layers"),
        ({"recurrences": [3]}, "2 looping layers do not divide into 3"),
        ({"tokens": {"1e3": [12]}}, "width 12 is not divisible by head_dim 8"),
        ({"recipes": {"cut": {"truncation_depth": 5}}}, "cut-r2-d8-D1e3-s0: truncation_depth 5"),
        ({"recipes": {"two": {"streams": "two"}}}, "model.streams: got two, expected a whole"),
        (
            {"tokens": {12345678: [8], 12345679: [16, 8]}},
            "tokens 12345678 and 12345679 are both 1.234568e7 in the names of runs",
        ),
        (
            {"recipes": {"a": {}, "a-unshared": {}}, "controls": ["unshared"]},
            "a-unshared is the control of a: choose another name",
        ),
        ({"base": "nowhere.yaml"}, "nowhere.yaml: No such file"),
        ({"min_steps": 50}, "baseline-r1-d8-D1e3-s0: 16 optimizer steps of 64 tokens are fewer"),
    ],
    ids=str,
)
def test_impossible_entries_are_named(write_grid, changes, words):
    with pytest.raises(UserError) as caught:
        plan_sweep(read_grid(write_grid(**({"tokens": {"1e3": [8]}} | changes))))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("base", "words"),
    [
        ({"data": {"data_dir": "x"}}, "data.batch_size is missing"),
        ({"data": []}, None),
        ({"data": 3}, "data: is not a section"),
        ({"data": {"batch_size": "four"}}, "data.batch_size: 'four' is not a whole number"),
        ({"data": {"batch_size": 0}}, "data.batch_size: 0 is below 1"),
        ({"trainer": {"devices": 0}}, "trainer.devices: 0 is below 1"),
        *(
            ({"data": {"batch_size": value}}, f"data.batch_size: {value!r} is not a whole number")
            for value in (float("inf"), float("nan"), 4.7, True, None)
        ),
        *(
            ({"trainer": {name: float("inf")}}, f"trainer.{name}: inf is not a whole number")
            for name in ("num_nodes", "devices", "accumulate_grad_batches")
        ),
        *(
            ({"trainer": {name: value}}, f"trainer.{name}: {value!r} would")
            for name, value in (
                ("max_steps", 10),
                ("max_epochs", 3),
                ("max_time", "00:00:10:00"),
                ("limit_train_batches", 1),
                ("limit_train_batches", 0.5),
                ("limit_val_batches", 2),
                ("overfit_batches", 1),
                ("fast_dev_run", True),
            )
        ),
        ({"data": {"data_dir": ["a"], "batch_size": 4}}, "data.data_dir: ['a'] is not text"),
        ({"data": {"data_dir": 3, "batch_size": 4}}, "data.data_dir: 3 is not text"),
        ({"model": {"vocabsize": 300}}, "model.vocabsize: did you mean model.vocab_size?"),
        ({"compute": {"convention": "mine"}}, "convention 'mine' is unknown"),
        ({"model": {"vocab_size": 300}}, None),
    ],
    ids=str,
)
def test_mistakes_in_the_base_are_named(write_grid, base, words):
    """What planning needs of the base and cannot find; batch_size and heads have no default."""
    with pytest.raises(UserError) as caught:
        plan_sweep(read_grid(write_grid(base, head_dim=None)))
    assert (words or "") in str(caught.value)
    assert "base.yaml" in str(caught.value)


def test_limits_that_are_none_pass(write_grid):
    """A configuration that Lightning itself has written names every setting, with its default."""
    defaults = {"max_steps": -1, "max_epochs": -1, "max_time": None, "limit_train_batches": 1.0}
    defaults |= {"limit_val_batches": None, "overfit_batches": 0.0, "fast_dev_run": False}
    assert plan_sweep(read_grid(write_grid({"trainer": {"accelerator": "cpu"} | defaults})))


def test_a_base_without_model_is_refused(write_grid, tmp_path):
    grid = write_grid()
    (tmp_path / "base.yaml").write_text("data: {}\n")
    with pytest.raises(UserError, match="no section `model`"):
        plan_sweep(read_grid(grid))
