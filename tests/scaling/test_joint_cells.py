"""Cells of two fits that share runs: counted, drawn and left out once for both."""

import numpy as np
import pytest

from looped.scaling.joint_cells import SHARED, JointCells
from tests.scaling.grids import synthetic


@pytest.fixture
def tables():
    """Two recipes on two budgets: the first without r = 8, plain runs in common."""
    first = synthetic(budgets=(1e18, 1e19), recurrences=(1, 2, 4))
    second = synthetic(budgets=(1e18, 1e19), recurrences=(2, 4, 8))
    second.index += len(first)
    plain = first[first["recurrences"] == 1]
    return [first, plain.combine_first(second)]


def test_cells_of_the_same_runs_are_shared(tables):
    """Two plain cells for both, four looped ones of the first and six of the second."""
    cells = JointCells.of(tables)
    assert (len(cells), cells.num_shared) == (12, 2)
    assert [(cells.owners == owner).sum() for owner in (SHARED, 0, 1)] == [2, 4, 6]
    for table, key in zip(tables, cells.keys, strict=True):
        shared = cells.owners[key] == SHARED
        np.testing.assert_array_equal(shared, table["recurrences"] == 1)


def test_a_shared_cell_is_left_out_of_both(tables):
    """One cell is missing in each row: plain runs from both tables, looped ones from one."""
    cells = JointCells.of(tables)
    first, second = cells.without_each()
    for owner, of_first, of_second in zip(cells.owners, first, second, strict=True):
        assert (of_first == 0).sum() == (4 if owner in (0, SHARED) else 0)
        assert (of_second == 0).sum() == (4 if owner in (1, SHARED) else 0)


def test_strata_keep_their_number(tables):
    """Each drawing has two plain cells, the same for both, four and six looped ones."""
    first, second = JointCells.of(tables).draws(50, seed=1)
    plain_first = first[:, (tables[0]["recurrences"] == 1).to_numpy()]
    plain_second = second[:, (tables[1]["recurrences"] == 1).to_numpy()]
    np.testing.assert_array_equal(plain_first, plain_second)
    assert set(plain_first.sum(axis=1)) == {2 * 4}
    assert set(first.sum(axis=1)) == {6 * 4}
    assert set(second.sum(axis=1)) == {8 * 4}
    assert len(np.unique(first, axis=0)) > 10
