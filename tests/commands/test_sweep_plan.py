"""`looped sweep plan`: table and JSON."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from looped.cli import main
from looped.scaling.expected_error import expected_difference, expected_error
from looped.scaling.prior import PUBLISHED
from looped.sweeps.grid import read_grid
from looped.sweeps.plan import plan_sweep
from looped.sweeps.points import by_recipe, points
from looped.sweeps.sweep_file import register
from tests.test_record import a_record

ROOT = Path(__file__).parents[2]
RUN_KEYS = (
    *("run", "recipe", "recurrences", "width", "budget_flops", "n_once", "n_rec"),
    *("flops_per_token", "steps", "tokens", "status"),
)


def test_the_papers_plan_as_json(monkeypatch, capsys):
    """The contract of --json, the total and the expected error of the published design."""
    monkeypatch.chdir(ROOT)
    assert main(["sweep", "plan", "configs/sweeps/paper.yaml", "--json", "-"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert len(plan["runs"]) == 116
    assert all(key in run for run in plan["runs"] for key in RUN_KEYS)
    assert {run["status"] for run in plan["runs"]} == {"planned"}
    spent = sum(run["flops_per_token"] * run["tokens"] for run in plan["runs"])
    assert plan["total_flops"] == spent
    assert plan["total_flops"] == pytest.approx(
        4 * (4 * 4.64e17 + 5e18 + 5 * 2.15e18 + 6 * 4.64e18 + 5e19 + 4 * 2.15e19), rel=1e-3
    )
    assert plan["expected"]["phi_stderr"] == pytest.approx(0.017, abs=0.001)


def test_the_table(write_grid, tmp_path, capsys):
    """One line per run, the total, the expected error, the warnings; nothing is written."""
    assert main(["sweep", "plan", str(write_grid()), "--no-timing"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["recipe", "r", "width"]
    assert lines[1].split()[:3] == ["baseline", "1", "8"]
    assert "4 runs" in "\n".join(lines)
    assert "phi of baseline cannot be told: 4 runs for 6 parameters" in "\n".join(lines)
    assert any(line.startswith("warning:") for line in lines)
    assert not (tmp_path / "sweep").exists()


def test_seeds_are_shown_when_there_are_several(write_grid, capsys):
    """Else two lines of a plan are the same."""
    assert main(["sweep", "plan", str(write_grid(seeds=[0, 7])), "--no-timing"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[:9]]
    assert lines[0][:5] == ["recipe", "r", "width", "seed", "N_once"]
    assert [line[3] for line in lines[1:]] == ["0"] * 4 + ["7"] * 4
    assert main(["sweep", "plan", str(write_grid()), "--no-timing"]) == 0
    assert "seed" not in capsys.readouterr().out.splitlines()[0]


SIZES = {"6.4e2": [8, 16, 24], "1.28e3": [8, 16, 24], "2.56e3": [8, 16, 24]}


def test_a_grid_that_adds_to_another_is_judged_with_it(write_grid, tmp_path, capsys):
    """Second seeds alone cannot tell phi: the directory's other runs will be fitted with them.

    What the two grids are said to tell is what one grid of both seeds would.
    """
    first = write_grid(tokens=SIZES).rename(tmp_path / "first.yaml")
    register(first, plan_sweep(read_grid(first)), out=tmp_path / "sweep")
    added = {"6.4e2": [8, 16, 24], "1.28e3": [8, 16, 24]}
    second = write_grid(tokens=added, seeds=[1]).rename(tmp_path / "second.yaml")
    together = _expected(second, capsys=capsys)
    text = _plan_text(second, capsys)
    assert "with the 18 runs of other grids in" in text
    assert f"expected standard error of phi, baseline: {together:.3g}" in text

    runs = plan_sweep(read_grid(first)) + plan_sweep(read_grid(second))
    assert together == pytest.approx(expected_error(points(runs), PUBLISHED).phi_stderr)
    assert together < _expected(first, capsys=capsys)  # which is not in the directory twice
    assert _expected(first, second, capsys=capsys) == pytest.approx(together)


def test_two_recipes_are_told_what_their_difference_will_be_known_to(write_grid, capsys):
    """Each recipe's own error says little of it: the plain runs are common to both."""
    recipes = {"baseline": {}, "two": {"streams": 2}}
    grid = write_grid(tokens=SIZES, recipes=recipes)
    text = _plan_text(grid, capsys)
    tables = {name: points(own) for name, own in by_recipe(plan_sweep(read_grid(grid))).items()}
    error = expected_difference(tables["baseline"], tables["two"], prior=PUBLISHED).phi_stderr
    line = f"expected standard error of delta phi, two against baseline: {error:.3g} (by"
    assert line in text
    assert main(["sweep", "plan", str(grid), "--no-timing", "--json=-"]) == 0
    expected = json.loads(capsys.readouterr().out)["expected"]
    assert (expected["against"], expected["delta_phi_stderr"]) == ("baseline", {"two": error})


def test_recipes_are_judged_at_the_budgets_they_will_be_fitted_at(capsys, monkeypatch):
    """The paper's truncation has four of the baseline's six budgets: what `compare` would fit."""
    monkeypatch.chdir(ROOT)
    grids = ["configs/sweeps/paper.yaml", "configs/sweeps/paper-truncated.yaml"]
    assert main(["sweep", "plan", *grids, "--no-timing", "--json=-"]) == 0
    expected = json.loads(capsys.readouterr().out)["expected"]
    paper, case = (points(plan_sweep(read_grid(Path(grid)))) for grid in grids)
    truncated = case[case["recurrences"] > 1]
    there = paper[paper["level"].isin(set(truncated["level"]))]
    plain = there[there["recurrences"] == 1]
    both = pd.concat([plain, truncated])
    assert (len(paper), len(there), len(both)) == (116, 80, 80)
    error = expected_error(both, PUBLISHED).phi_stderr
    assert expected["by_recipe"]["truncated"] == pytest.approx(error, rel=1e-6)
    change = expected_difference(there, both, prior=PUBLISHED)
    error = pytest.approx(change.phi_stderr, rel=1e-6)
    assert expected["delta_phi_stderr"]["truncated"] == error
    assert expected["with_offset"]["delta"]["truncated"] == {
        "delta_phi_stderr": pytest.approx(change.with_offset.phi, rel=1e-6),
        "delta_offset_stderr": pytest.approx(change.with_offset.offset, rel=1e-6),
    }


def test_an_offset_needs_a_second_count_above_1(write_grid, capsys):
    """A line more for each error where phi and the offset can be told apart, else none and null."""
    recipes = {"baseline": {}, "two": {"streams": 2}}
    counts = {"effective_depth": 6, "recurrences": [1, 2, 4]}
    told = _plan_text(write_grid(tokens=SIZES, recipes=recipes, **counts), capsys)
    lines = [line for line in told.splitlines() if "with an offset for being looped" in line]
    assert [line.split(": ")[1].split()[0] for line in lines] == ["phi", "phi", "delta"]
    grid = write_grid(tokens=SIZES, recipes=recipes, recurrences=[1, 2])
    assert "with an offset" not in _plan_text(grid, capsys)
    assert main(["sweep", "plan", str(grid), "--no-timing", "--json=-"]) == 0
    expected = json.loads(capsys.readouterr().out)["expected"]
    nothing = {"by_recipe": {"baseline": None, "two": None}, "delta": {"two": None}}
    assert expected["with_offset"] == nothing


def test_a_difference_without_common_budgets(write_grid, tmp_path, capsys):
    """Null and a sentence, not a missing line."""
    first = write_grid(tokens=SIZES).rename(tmp_path / "first.yaml")
    sizes = {f"{10 * float(count):g}": widths for count, widths in SIZES.items()}
    second = write_grid(tokens=sizes, recipes={"two": {"streams": 2}})
    assert main(["sweep", "plan", str(first), str(second), "--no-timing"]) == 0
    words = "delta phi, two against baseline, cannot be told from the budgets that both have"
    assert words in capsys.readouterr().out


def _expected(*grids, capsys) -> float:
    assert main(["sweep", "plan", *map(str, grids), "--no-timing", "--json=-"]) == 0
    return json.loads(capsys.readouterr().out)["expected"]["phi_stderr"]


def _plan_text(grid, capsys) -> str:
    assert main(["sweep", "plan", str(grid), "--no-timing"]) == 0
    return capsys.readouterr().out


def test_widths_of_one_cell_may_stand_in_two_grids(write_grid, tmp_path, capsys):
    """A second seed at one width of a cell is no cell that misses its optimum."""
    whole = write_grid(tokens=None, budgets={"1e8": [8, 64]}).rename(tmp_path / "whole.yaml")
    part = write_grid(tokens=None, budgets={"1e8": [64]}, seeds=[1]).rename(tmp_path / "part.yaml")
    assert "do not bracket" in _plan_text(part, capsys)
    register(whole, plan_sweep(read_grid(whole)), out=tmp_path / "sweep")
    assert "do not bracket" not in _plan_text(part, capsys)


def test_a_law_of_ones_own(write_grid, tmp_path, capsys):
    """--law replaces the published coefficients; a file that is none is refused in one line."""
    bad = tmp_path / "law.json"
    bad.write_text("{}")
    assert main(["sweep", "plan", str(write_grid()), f"--law={bad}"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "not the JSON of a fit" in error


def test_impossible_grids_end_with_status_2(write_grid, capsys):
    assert main(["sweep", "plan", str(write_grid(min_steps=50))]) == 2
    assert "run baseline-r1-d8-D6.4e2-s0: 10 optimizer steps" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"vocab_size": 512}, "the model has vocab_size 512, the data in"),
        ({"seq_len": 32}, "the model has seq_len 32, the data in"),
    ],
    ids=str,
)
def test_data_of_other_models_is_refused(write_grid, capsys, model, words):
    """A plan for data that no run can be trained on would be believed until the first one fails."""
    base = {"model": {"width": 8, "num_heads": 1, "vocab_size": 300, "seq_len": 16} | model}
    assert main(["sweep", "plan", str(write_grid(base))]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_a_plan_may_come_before_its_data(write_grid, capsys):
    grid = write_grid({"data": {"data_dir": "nowhere", "batch_size": 4}})
    assert main(["sweep", "plan", str(grid)]) == 0
    out = capsys.readouterr().out
    assert "4 runs" in out
    assert "warning: no prepared data in nowhere" in out


def test_one_run_is_singular(write_grid, capsys):
    grid = write_grid(recurrences=[1], tokens={"6.4e2": [8]})
    assert main(["sweep", "plan", str(grid), "--no-timing"]) == 0
    assert "\n1 run, " in capsys.readouterr().out


def test_the_time_of_what_is_left(write_grid, capsys, monkeypatch):
    """Complete runs take no time any more, a half-trained one half of it; none left, none tried."""
    tried = []

    def a_minute_each(runs, *, jobs):
        tried.append([run.name for run in runs])
        return [60.0] * len(runs)

    monkeypatch.setattr("looped.sweeps.timing.estimated_seconds", a_minute_each)
    grid = write_grid()
    runs = plan_sweep(read_grid(grid))
    for run, share in zip(runs[:2], (1, 2), strict=True):
        run.directory.mkdir(parents=True)
        flops = {"train": run.plan.train_flops // share}
        status = "complete" if share == 1 else "stopped"
        a_record(status=status, flops=flops, data=None).write(run.directory)
    assert main(["sweep", "plan", str(grid)]) == 0
    assert tried == [[run.name for run in runs[1:]]]
    out = capsys.readouterr().out
    assert "about 2.5 min left on this machine" in out
    for run in runs[1:]:
        run.directory.mkdir(parents=True, exist_ok=True)
        a_record(status="complete", data=None).write(run.directory)
    assert main(["sweep", "plan", str(grid)]) == 0
    assert len(tried) == 1


def test_what_is_held_counts(monkeypatch, capsys):
    """The error expected with E held is smaller than with E free; a misspelt one is refused."""
    monkeypatch.chdir(ROOT)
    errors = []
    for fix in ([], ["--fix", "E=1.5"]):
        assert main(["sweep", "plan", "configs/sweeps/paper.yaml", "--json", "-", *fix]) == 0
        errors.append(json.loads(capsys.readouterr().out)["expected"]["phi_stderr"])
    assert errors[1] < errors[0]
    assert main(["sweep", "plan", "configs/sweeps/paper.yaml", "--fix", "F=1"]) == 2
    assert "--fix F=1: cannot fix 'F'" in capsys.readouterr().err


@pytest.mark.parametrize("action", ["plan", "run"])
def test_other_data_than_runs_were_trained_on(write_grid, capsys, action):
    """Half a sweep on one text and half on another is no sweep."""
    grid = write_grid()
    run = plan_sweep(read_grid(grid))[0]
    run.directory.mkdir(parents=True)
    a_record(status="complete", data={"fingerprint": "f" * 16}).write(run.directory)
    assert main(["sweep", action, str(grid)]) == 2
    error = capsys.readouterr().err
    assert f"holds other data than {run.name} was trained on" in error
    assert f"instead of {'f' * 16}" in error
    assert error.count("\n") == 1


def test_places_that_cannot_be_written(write_grid, tmp_path, capsys):
    """Said before the table is made: nobody waits for a result that is then lost."""
    (tmp_path / "file").write_text("")
    for out in ("file", "file/below"):
        assert main(["sweep", "plan", str(write_grid(out=str(tmp_path / out)))]) == 2
        output = capsys.readouterr()
        assert f"out {tmp_path / out} cannot be written" in output.err
        assert (output.out, output.err.count("\n")) == ("", 1)
    target = tmp_path / "nowhere" / "plan.json"
    for action in (["plan", str(write_grid())], ["status", str(tmp_path)]):
        assert main(["sweep", *action, f"--json={target}"]) == 2
        output = capsys.readouterr()
        assert f"--json {target} cannot be written" in output.err
        assert (output.out, output.err.count("\n")) == ("", 1)


def test_help_is_cheap():
    """--help of sweep and its actions imports neither numpy nor torch."""
    code = (
        "import sys\nfrom looped.cli import main\n"
        "for action in ([], ['plan'], ['run'], ['status'], ['design']):\n"
        "    try: main(['sweep', *action, '--help'])\n"
        "    except SystemExit: pass\n"
        "assert not {'numpy', 'torch', 'lightning', 'rich', 'submitit'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_sigterm_while_timing(write_grid, tmp_path, capsys, monkeypatch):
    """As Ctrl-C: a line, status 130, and no folder of half-trained runs left behind."""

    def terminated(runs, *, jobs):
        assert [path.name[:14] for path in folder.iterdir()] == ["looped-timing-"]
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)

    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setattr("looped.sweeps.timing._train_briefly", terminated)
    before = signal.getsignal(signal.SIGTERM)
    assert main(["sweep", "plan", str(write_grid())]) == 130
    assert capsys.readouterr().err == "looped sweep: interrupted\n"
    assert [*folder.iterdir()] == []
    assert signal.getsignal(signal.SIGTERM) is before
