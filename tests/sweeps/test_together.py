"""Several grids as one sweep."""

import pytest

from looped.errors import UserError
from looped.sweeps.plan import plan_sweep
from looped.sweeps.sweep_file import registered_runs
from looped.sweeps.together import read_together


@pytest.fixture
def named_grid(write_grid, tmp_path):
    """Writes a grid under a name."""

    def write(name: str, **changes):
        return write_grid(**changes).rename(tmp_path / f"{name}.yaml")

    return write


def test_each_run_is_planned_once_in_the_order_of_the_grids(named_grid):
    """Recipes share their runs of r = 1; a path given twice is one grid."""
    whole = named_grid("whole", recipes={"two": {"streams": 2}})
    seeds = named_grid("seeds", recipes={"three": {"streams": 3}}, seeds=[0, 1])
    together = read_together([whole, seeds, whole])
    names = [run.name for run in together.runs]
    first, second = (
        [run.name for run in plan_sweep(together.grids[path])] for path in (whole, seeds)
    )
    assert names[: len(first)] == first
    assert set(names) == {*first, *second}
    assert len(names) == len(set(names)) == 4 + 8 - 2  # two widths of r = 1 and seed 0 in common
    assert together.first_recipe == "two"


def test_the_directory_knows_all_of_them(named_grid):
    """And what lies beside both is in neither."""
    paths = [named_grid("a"), named_grid("b", seeds=[1])]
    third = named_grid("c", seeds=[2])
    read_together([third]).register()
    together = read_together(paths)
    together.check_unchanged()
    together.register()
    beside = together.runs_beside()
    assert beside == read_together([third]).runs
    assert {run.name for run in registered_runs(together.out)} == {
        run.name for run in (*together.runs, *beside)
    }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"out": "elsewhere"}, "different out, .*sweep and elsewhere: launch them one after"),
        ({"base": "configs/demo.yaml"}, "different base, .* and configs/demo.yaml"),
        (
            {"effective_depth": 6},
            "plan different runs of the name baseline-r1-d8-D6.4e2-s0: model.recurrent_layers 4",
        ),
    ],
)
def test_grids_that_are_no_one_sweep(named_grid, changes, words):
    """One line that names both."""
    paths = [named_grid("a"), named_grid("b", **changes)]
    with pytest.raises(UserError, match=rf"a\.yaml and \S*b\.yaml .*{words}"):
        read_together(paths)
