"""Every YAML that is shipped is one that works: parsed whole, planned whole."""

from pathlib import Path

import pandas as pd
import pytest
import yaml

from looped.cli import main
from looped.sweeps.grid import read_grid
from looped.sweeps.plan import plan_sweep

ROOT = Path(__file__).parents[1]
DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("path", sorted(ROOT.glob("configs/*.yaml")), ids=lambda p: p.stem)
def test_run_configurations_parse(path, capsys):
    """An argument that was renamed, or never existed, fails here."""
    with pytest.raises(SystemExit) as ended:
        main(["fit", f"--config={path}", "--print_config"])
    assert ended.value.code == 0
    assert main(["count", f"--config={path}"]) == 0


@pytest.mark.parametrize(
    "path",
    sorted([*ROOT.glob("configs/strategies/*.yaml"), *ROOT.glob("configs/loggers/*.yaml")]),
    ids=lambda p: p.stem,
)
def test_parts_parse_on_top_of_a_run(path, capsys):
    """The YAML of a strategy or a logger says nothing of the run but its trainer."""
    run = f"--config={ROOT / 'configs' / 'demo.yaml'}"
    with pytest.raises(SystemExit) as ended:
        main(["fit", run, f"--config={path}", "--print_config"])
    assert ended.value.code == 0
    assert yaml.safe_load(path.read_text()).keys() == {"trainer"}


@pytest.mark.parametrize("path", sorted(ROOT.glob("configs/sweeps/*.yaml")), ids=lambda p: p.stem)
def test_grids_plan(path, monkeypatch):
    """Every run of a grid is possible, and its base configuration is there."""
    monkeypatch.chdir(ROOT)
    runs = plan_sweep(read_grid(path.relative_to(ROOT)))
    assert len({run.name for run in runs}) == len(runs) > 0


def _runs(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    return plan_sweep(read_grid(Path(f"configs/sweeps/{name}.yaml")))


def test_the_papers_grid(monkeypatch):
    """116 runs = 29 sizes x 4, with the published sizes, FLOPs and token counts of every run."""
    runs = _runs("paper", monkeypatch)
    assert len(runs) == 116
    sizes = {(run.horizon[1], run.architecture.width) for run in runs}
    assert len(sizes) == 29
    published = pd.read_csv(DATA / "isodepth_runs.csv").query("recipe == 'baseline'")
    assert len(published) == 116
    key = ["budget_flops", "recurrences", "width"]
    rows = {tuple(row[key]): row for _, row in published.iterrows()}
    for run in runs:
        row = rows[run.plan.budget_flops, run.architecture.recurrences, run.architecture.width]
        groups = run.architecture.parameter_groups()
        assert (groups.n_once, groups.n_rec) == (row["n_once"], row["n_rec"])
        assert run.plan.flops_per_token == row["flops_per_token"]
        assert run.horizon[1] / run.plan.flops_per_token == pytest.approx(row["tokens"], abs=1)
        assert run.plan.tokens_per_step == 262_144
        assert run.plan.tokens == pytest.approx(row["tokens"], abs=131_072)  # half a step


@pytest.mark.parametrize(("r", "millions"), [(4, 954.8), (1, 973.1)])
def test_tokens_the_paper_prints(r, millions, monkeypatch):
    """D = budget / F at 1e18 FLOPs and s = 10, as printed in arXiv 2604.21106."""
    (run,) = [
        run
        for run in _runs("paper", monkeypatch)
        if run.architecture.recurrences == r and "d640-C1e18" in run.name
    ]
    assert run.horizon[1] / run.plan.flops_per_token / 1e6 == pytest.approx(millions, abs=0.05)


@pytest.mark.parametrize("recipe", ["truncated", "hyperconnections"])
def test_the_papers_case_studies(recipe, monkeypatch):
    """60 looped runs on the four lower budgets; their r = 1 runs are the baseline's own."""
    baseline = {run.name: run for run in _runs("paper", monkeypatch)}
    runs = _runs(f"paper-{recipe}", monkeypatch)
    plain = [run for run in runs if run.architecture.recurrences == 1]
    looped = [run for run in runs if run.architecture.recurrences > 1]
    assert (len(plain), len(looped)) == (20, 60)
    assert {run.horizon[1] for run in runs} == {4.64e17, 1e18, 2.15e18, 4.64e18}
    assert all(baseline[run.name] == run for run in plain)
    assert {run.recipe for run in looped} == {recipe}
    if recipe == "truncated":
        depths = {(a.recurrences, a.truncation_depth) for a in (run.architecture for run in looped)}
        assert depths == {(2, 1), (4, 2), (8, 4)}
    else:
        assert {run.architecture.streams for run in looped} == {2}
