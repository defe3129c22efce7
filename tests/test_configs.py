"""Every YAML that is shipped is one that works: parsed whole, planned whole."""

from pathlib import Path

import pytest
import yaml

from looped.cli import main
from looped.sweeps.grid import read_grid
from looped.sweeps.plan import plan_sweep

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("path", sorted(ROOT.glob("configs/*.yaml")), ids=lambda p: p.stem)
def test_run_configurations_parse(path, capsys):
    """An argument that was renamed, or never existed, fails here."""
    with pytest.raises(SystemExit) as ended:
        main(["fit", f"--config={path}", "--print_config"])
    assert ended.value.code == 0
    assert main(["count", f"--config={path}"]) == 0


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("configs/strategies/*.yaml")), ids=lambda p: p.stem
)
def test_strategies_parse_on_top_of_a_run(path, capsys):
    """A strategy's YAML says nothing but how processes share the work."""
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
