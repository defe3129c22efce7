"""The recipes of a cell and their controls."""

import pytest

from looped.errors import UserError
from looped.sweeps.base import read_base
from looped.sweeps.cells import recipes_of_cell
from looped.sweeps.grid import read_grid
from looped.sweeps.plan import plan_sweep
from looped.sweeps.points import by_recipe

RECIPES = {"baseline": {}, "cut": {"truncation_depth": "half"}, "two": {"streams": 2}}


@pytest.fixture
def cell(write_grid):
    """The recipes of a cell of a grid with these changes."""

    def of(r, /, **changes):
        grid = read_grid(write_grid(**({"effective_depth": 10} | changes)))
        return recipes_of_cell(grid, read_base(grid.base), r)

    return of


def test_without_controls_a_cell_has_its_recipes(cell):
    """R = 1 once for all, half resolved for each r."""
    changes = {"recurrences": [1, 8], "recipes": RECIPES}
    assert cell(1, **changes) == {"baseline": {}}
    assert cell(8, **changes) == RECIPES | {"cut": {"truncation_depth": 4}}


def test_an_unshared_twin_of_every_looped_run(cell):
    """The recipe's own arguments and shared: false, under a name of its own."""
    changes = {"recurrences": [1, 8], "recipes": RECIPES, "controls": ["unshared"]}
    assert cell(1, **changes) == {"baseline": {}}
    found = cell(8, **changes)
    assert list(found) == [
        *("baseline", "baseline-unshared", "cut", "cut-unshared", "two", "two-unshared")
    ]
    assert found["baseline-unshared"] == {"shared": False}
    assert found["cut-unshared"] == {"truncation_depth": 4, "shared": False}
    assert found["two-unshared"] == {"streams": 2, "shared": False}


def test_the_plain_stack_with_each_wiring(cell):
    """Once for recipes that inject alike; truncation is no wiring, no injection is none."""
    changes = {"recurrences": [1, 2], "controls": ["injected"]}
    recipes = RECIPES | {"add": {"injection": "additive"}, "bare": {"injection": "none"}}
    assert cell(1, recipes=recipes, **changes) == {
        "baseline": {},
        "baseline-injected": {"injection": "linear"},
        "two-injected": {"streams": 2},
        "add-injected": {"injection": "additive"},
    }
    assert cell(2, **changes) == {"baseline": {}}
    with pytest.raises(UserError, match="no recipe has an injection or streams"):
        cell(1, recipes={"bare": {"injection": "none"}}, **changes)


def test_controls_are_planned_beside_their_cells(write_grid):
    """Names, compute and parameters: an unshared run counts every copy at equal FLOPs."""
    grid = write_grid(tokens={"1e3": [8]}, controls=["unshared", "injected"])
    runs = {run.name: run for run in plan_sweep(read_grid(grid))}
    assert list(runs) == [
        "baseline-r1-d8-D1e3-s0",
        "baseline-injected-r1-d8-D1e3-s0",
        "baseline-r2-d8-D1e3-s0",
        "baseline-unshared-r2-d8-D1e3-s0",
    ]
    plain, injected, looped, unshared = runs.values()
    assert [run.control for run in runs.values()] == [None, "injected", None, "unshared"]
    assert unshared.recipe == "baseline-unshared"
    assert "--model.shared=False" in unshared.fit_arguments
    assert unshared.plan == looped.plan
    groups = [run.architecture.parameter_groups() for run in (looped, unshared, plain, injected)]
    assert groups[1].n_rec == 2 * groups[0].n_rec
    assert groups[1].n_once == groups[0].n_once
    assert groups[3].injection == groups[0].injection
    assert groups[3].n_rec == groups[2].n_rec


def test_expected_errors_leave_controls_aside(write_grid):
    """They are no points of the law unless --reference asks for them."""
    grid = read_grid(write_grid(controls=["unshared", "injected"]))
    tables = by_recipe(plan_sweep(grid))
    assert list(tables) == ["baseline"]
    assert {run.control for run in tables["baseline"]} == {None}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"controls": "unshared"}, "controls: 'unshared' is not a list of unshared, injected"),
        ({"controls": ["unshared", "unshared"]}, "names one value twice"),
        ({"controls": ["shared"]}, "controls: 'shared' is unknown: choose unshared, injected"),
        ({"controls": ["injected"], "recurrences": [2]}, "add 1 to recurrences"),
        ({"controls": ["unshared"], "recurrences": [1]}, "unshared stands in cells of r > 1"),
    ],
    ids=str,
)
def test_impossible_controls_are_named(write_grid, changes, words):
    with pytest.raises(UserError) as caught:
        read_grid(write_grid(**changes))
    assert words in str(caught.value)
