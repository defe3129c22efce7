"""What is committed of the measurement is of planned runs, and refits in one command."""

import importlib.util
import json
from collections import Counter
from pathlib import Path

import pytest

from looped.cli import main
from looped.controls import control_of
from looped.record import read_run_file
from looped.sweeps.grid import read_grid
from looped.sweeps.plan import plan_sweep

ROOT = Path(__file__).parents[1]
RECORDS = {path.parent.name: path for path in sorted(ROOT.glob("results/cpu/*/run.json"))}


@pytest.fixture(scope="module")
def planned():
    """The runs of every grid of the measurement, by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        paths = sorted(Path("configs/sweeps").glob("cpu*.yaml"))
        return {run.name: run for path in paths for run in plan_sweep(read_grid(path))}


@pytest.mark.parametrize("name", RECORDS)
def test_records_are_of_planned_runs(name, planned):
    """A record of another horizon, seed or model would be fitted as if it were of the grid."""
    record, run = read_run_file(RECORDS[name]), planned[name]
    assert record.run == name
    assert record.status in ("complete", "diverged")
    assert (record.recipe, record.seed) == (run.recipe, run.seed)
    model = run.architecture.as_record()
    assert record.model == {argument: model[argument] for argument in record.model}
    assert record.progress["planned_tokens"] == run.plan.tokens
    if record.status == "complete":
        assert record.progress["tokens"] == run.plan.tokens
        assert record.validation[-1].tokens == run.plan.tokens
        assert record.flops["train"] == run.plan.train_flops


def test_the_records_refit_in_one_command(tmp_path, capsys):
    """Whatever is there: every complete run is fitted, but for controls, and nothing else is."""
    target = tmp_path / "phi.json"
    arguments = ["--estimator", "least_squares", "--resamples", "20", "--json", str(target)]
    assert main(["phi", str(ROOT / "results" / "cpu"), *arguments]) == 0
    content = json.loads(target.read_text())
    records = {name: read_run_file(path) for name, path in RECORDS.items()}
    diverged = {name for name, record in records.items() if record.status == "diverged"}
    controls = {name for name, record in records.items() if control_of(record.model)}
    assert {entry["run"] for entry in content["excluded"]} == diverged | controls
    complete = Counter(record.recipe for name, record in records.items() if name not in diverged)
    assert content["recipes"]["baseline"]["n_runs"] == complete["baseline"]


def test_the_table_of_learning_rates_is_that_of_the_records():
    """The document shows what the script prints of the committed records."""
    path = ROOT / "results" / "recipe.py"
    spec = importlib.util.spec_from_file_location("recipe", path)
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)
    records = [read_run_file(path) for path in sorted(ROOT.glob("results/recipe/*/run.json"))]
    assert recipe.table(records) in (ROOT / "docs" / "measurement.md").read_text()
