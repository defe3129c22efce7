"""What a plan warns of."""

from dataclasses import replace
from pathlib import Path

import pytest

from looped.architecture import Architecture
from looped.scaling.prior import PUBLISHED
from looped.scaling.published import published_minima
from looped.sweeps.doubts import best_width, doubts
from looped.sweeps.grid import read_grid
from looped.sweeps.plan import plan_sweep

PAPER = Path(__file__).parents[2] / "configs" / "sweeps" / "paper.yaml"


@pytest.fixture
def paper(monkeypatch):
    monkeypatch.chdir(PAPER.parents[2])
    return read_grid(PAPER)


def _looped(r: int) -> Architecture:
    return Architecture(
        width=640,
        num_heads=5,
        prelude_layers=2,
        recurrent_layers=16 // r,
        coda_layers=2,
        recurrences=r,
    )


@pytest.mark.parametrize("r", [1, 8])
def test_best_width_by_trying_every_width(r):
    """All even widths, by heads of dimension 2, which change no count: the lowest loss is there."""
    law, budget = PUBLISHED.law, 2.15e18
    best, lowest = 0, float("inf")
    for width in range(256, 2304, 2):
        architecture = replace(_looped(r), width=width, num_heads=width // 2)
        groups = architecture.parameter_groups()
        tokens = budget / architecture.flops_per_token()
        loss = float(law.loss(r, groups.n_once, n_rec=groups.n_rec, tokens=tokens))
        if loss < lowest:
            best, lowest = width, loss
    found = best_width(_looped(r), convention="paper", budget=budget, law=law)
    assert found == pytest.approx(best, rel=0.01)


def test_best_widths_are_near_the_published_minima():
    """Within a quarter in width of all 24 parabola minima, in valleys that are flat that far."""
    for _, row in published_minima().iterrows():
        architecture = _looped(int(row["recurrences"]))
        width = best_width(
            architecture, convention="paper", budget=row["budget_flops"], law=PUBLISHED.law
        )
        groups = architecture.parameter_groups()
        published = 640 * (row["n_total"] / (groups.n_once + groups.n_rec)) ** 0.5
        assert published * 0.99 < width < published * 1.25


def test_widths_beside_the_optimum(paper):
    """Widths that all lie on one side of the best one leave the parabola without a vertex."""
    few = replace(paper, budgets={1e18: (384, 512)}, recurrences=(1, 8))
    lines = doubts(plan_sweep(few), PUBLISHED, train_rows=None)
    assert len(lines) == 1
    assert "budget 1e+18, r = 1: widths 384 to 512 do not bracket" in lines[0]
    assert "in 2 of 2 cells all widths lie below the best" in lines[0]
    sides = replace(few, budgets={4.64e17: (1536, 1792), 1e18: (384, 512)})
    lines = doubts(plan_sweep(sides), PUBLISHED, train_rows=None)
    assert ["above" in line for line in lines] == [True, False]
    paper_plan = plan_sweep(paper)
    assert doubts(paper_plan, PUBLISHED, train_rows=None) == []
    both = replace(few, budgets={1e18: (384, 896)})
    assert doubts(plan_sweep(both), PUBLISHED, train_rows=None) == []


def test_repeated_data(paper):
    """More than one epoch; the worst run is named. 1e18 FLOPs at d = 384 are 2.1e9 tokens."""
    runs = plan_sweep(replace(paper, budgets={1e18: (384, 896)}, recurrences=(1,)))
    (line,) = doubts(runs, PUBLISHED, train_rows=500_000)
    assert line.startswith(
        "1 of 2 runs see their data more than once, baseline-r1-d384-C1e18-s0 2.06 times"
    )
    assert doubts(runs, PUBLISHED, train_rows=2_000_000) == []


def test_far_from_the_published_runs(write_grid):
    """The published law says nothing reliable of a thousand tokens."""
    lines = doubts(plan_sweep(read_grid(write_grid())), PUBLISHED, train_rows=None)
    assert len(lines) == 1
    assert "give --law a fit" in lines[0]


def test_devices_left_to_lightning(write_grid):
    """Tokens per step, and with them the steps, depend on a number that planning cannot know."""
    runs = plan_sweep(read_grid(write_grid({"trainer": {"devices": "auto"}})))
    assert "leaves trainer.devices to Lightning" in doubts(runs, PUBLISHED, train_rows=None)[0]


def test_a_truncated_control_is_doubtful(paper):
    """Blocks of passes without gradient are never trained where each pass has its own."""
    recipes = {"cut": {"truncation_depth": "half"}}
    grid = replace(paper, recipes=recipes, controls=("unshared", "injected"))
    runs = plan_sweep(grid)
    (line,) = [
        line for line in doubts(runs, PUBLISHED, train_rows=None) if "initial values" in line
    ]
    assert line.startswith("cut-unshared-r2-d384-C4.64e17-s0 and 86 more: truncation leaves")
    sound = plan_sweep(replace(paper, controls=("unshared",)))
    assert not any("initial" in line for line in doubts(sound, PUBLISHED, train_rows=None))
