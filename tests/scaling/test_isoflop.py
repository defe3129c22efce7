"""Iso-FLOP parabolas, held to the published vertices."""

import numpy as np
import pandas as pd
import pytest

from looped.scaling.isoflop import isoflop_parabolas
from looped.scaling.levels import level_order
from looped.scaling.published import published_minima
from tests.scaling.grids import published


def test_the_published_runs_have_the_published_minima():
    """24 vertices within 1e-4 nats and 0.1 % in N of the numbers the paper prints."""
    minima = published_minima().set_index(["budget_flops", "recurrences"])
    cells = isoflop_parabolas(published("baseline"))
    assert len(cells) == 24
    for cell in cells:
        expected = minima.loc[(level_order(cell.level), cell.recurrences)]
        assert cell.loss == pytest.approx(expected["loss"], abs=1e-4)
        assert cell.n_total == pytest.approx(expected["n_total"], rel=1e-3)
        assert cell.inside


def table(sizes, losses) -> pd.DataFrame:
    return pd.DataFrame(
        {"level": "1e+18 FLOPs", "recurrences": 2, "n_once": 0, "n_rec": sizes, "loss": losses}
    )


def test_a_known_parabola_comes_back():
    """Vertex, value and curvature of one whose numbers are chosen."""
    sizes = np.array([1e6, 2e6, 5e6, 2e7])
    (cell,) = isoflop_parabolas(table(sizes, 3.0 + 0.1 * np.log(sizes / 4e6) ** 2))
    assert cell.n_total == pytest.approx(4e6)
    assert cell.loss == pytest.approx(3.0)
    assert cell.coefficients[0] == pytest.approx(0.1)
    assert cell.fit_error < 1e-12


def test_what_has_no_minimum_has_none():
    """Two runs, a parabola that opens downwards, a vertex outside the runs: each is said."""
    sizes = np.array([1e6, 2e6, 4e6])
    (two,) = isoflop_parabolas(table(sizes[:2], [3.0, 2.9]))
    assert (two.coefficients, two.n_total, two.loss, two.inside) == (None, None, None, False)
    (downwards,) = isoflop_parabolas(table(sizes, [2.9, 3.0, 2.9]))
    assert (downwards.n_total, downwards.loss, downwards.inside) == (None, None, False)
    (straight,) = isoflop_parabolas(table(sizes, [3.0, 2.9, 2.8 + 1e-9]))
    assert (straight.n_total, straight.loss, straight.inside) == (None, None, False)
    (outside,) = isoflop_parabolas(table(sizes, [3.0, 2.8, 2.7]))
    assert outside.n_total > 4e6
    assert not outside.inside
