"""`looped demo` on a grid of seconds: the whole path, twice."""

import re
import shutil
from pathlib import Path

import pytest

from looped.cli import main
from looped.record import read_run_file

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_whole_path_and_again(tmp_path, monkeypatch, capfd):
    """From the standard library's text to a headline with phi; the second time trains nothing."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "configs", "configs")
    grid = Path("configs/sweeps/demo.yaml")
    small = re.sub(r"( )([\d.]+)e[56]: \[.*\]", r"\1\2e3: [16]", grid.read_text())
    grid.write_text(f"{small}min_steps: 1\n")
    assert main(["demo", "--jobs", "2"]) == 0
    first = capfd.readouterr().out
    assert "phi" in first
    assert "demonstrates the path" in first
    records = [read_run_file(path) for path in Path("runs/demo").glob("*/run.json")]
    assert len(records) == 9
    assert {record.status for record in records} == {"complete"}
    assert {record.model["recurrences"] for record in records} >= {1, 4, 8}
    assert "page     runs/demo/report/index.html" in first
    assert Path("runs/demo/report/figures/baseline-isoflop.png").is_file()
    assert '<h2 id="runs-heading">9 runs</h2>' in Path("runs/demo/report/index.html").read_text()
    assert main(["demo", "--jobs", "2"]) == 0
    assert f"{len(records)} of {len(records)} runs were finished before" in capfd.readouterr().out


def test_elsewhere_it_says_where_to_go(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 2
    assert "directory of the project" in capsys.readouterr().err
