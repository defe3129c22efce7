"""`looped phi`, from the command line."""

import argparse
import io
import json
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from looped.cli import main
from looped.commands import phi as command
from looped.scaling.controls import REFERENCES
from looped.scaling.fit import ESTIMATORS
from looped.scaling.intervals import DEFAULT_KIND, KINDS
from looped.scaling.published import RUNS_FILE
from tests.scaling.grids import TRUTH, published, synthetic
from tests.scaling.records import record_of, write_run
from tests.scaling.test_runs import ROWS, TABLE
from tests.scaling.test_seed_noise import together

QUICK = ("--resamples", "100")


def run(*arguments, capsys) -> tuple[int, str, str]:
    status = main(["phi", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.mark.parametrize(
    ("shared", "bend", "words"),
    [
        (0.0, 0.0, ": that the law misses by more is not shown (p = "),
        (0.0, 0.02, ": the law misses by more than that (p = "),
        (0.03, 0.02, "; those of one seed, budget and width err together (p = "),
    ],
)
def test_what_second_seeds_tell(capsys, tmp_path, shared, bend, words):
    """Whether the law misses, and not where the test of it would take runs wrongly as apart."""
    table = together(shared=shared, own=0.005)
    table["loss"] *= np.exp(bend * table["recurrences"].isin([2, 4]))
    table.drop(columns=["level", "run"]).to_csv(tmp_path / "runs.csv", index=False)
    options = ("--estimator", "least_squares", *QUICK, "--json", tmp_path / "phi.json")
    status, out, err = run(tmp_path / "runs.csv", *options, capsys=capsys)
    assert (status, err) == (0, "")
    assert f"nats between runs that differ in the seed alone (degrees of freedom: 96){words}" in out
    found = json.loads((tmp_path / "phi.json").read_text())["recipes"]["baseline"]["seed_noise"]
    assert (found["shared"]["p"] < 0.05) == (shared > 0)


def test_the_published_runs_in_one_command(capsys, tmp_path):
    """The five-second demonstration: headline on the terminal, schema 1 in the file."""
    target = tmp_path / "phi.json"
    status, out, err = run("--published", "--json", target, capsys=capsys)
    assert (status, err) == (0, "")
    assert "phi = 0.458  [0.42, 0.49]  (95 %, delete-a-cell jackknife, t quantile, 116 runs)" in out
    content = json.loads(target.read_text())
    assert set(content) == {"schema", "recipes", "excluded", "warnings"}
    assert content["schema"] == 1
    fit = content["recipes"]["baseline"]
    assert fit["phi"]["value"] == pytest.approx(0.4576, abs=2e-3)
    assert fit["phi"]["ci"][0] < 0.4576 < fit["phi"]["ci"][1]
    assert fit["phi"]["profile_ci"][0] < 0.4576 < fit["phi"]["profile_ci"][1]
    assert fit["phi"]["ci_level"] == 0.95
    assert fit["phi"]["stderr"] > 0
    assert set(fit["law"]) == {"E", "A", "alpha", "B", "beta"}
    assert (fit["estimator"], fit["n_runs"], fit["identifiable"]) == ("huber", 116, True)
    assert fit["objective"] == pytest.approx(2.84099e-4, rel=1e-5)
    assert set(fit["by_recurrence"]) == {"1", "2", "4", "8"}
    assert set(fit["tests"]) == {"phi=0", "phi=1"}
    assert fit["warnings"] == []
    assert len(fit["isoflop"]) == 24
    assert fit["isoflop"][0]["loss"] == pytest.approx(2.852291, abs=1e-4)
    assert len(fit["sensitivity"]) == 8
    assert [row["left_out"] for row in fit["predictions"]] == [
        *("each cell in turn", "all of 2.15e+19 FLOPs")
    ]
    assert content["excluded"] == []


def test_the_worths_stand_under_phi(capsys, tmp_path):
    """Each recurrence count with its interval and one sentence in print, the same in JSON."""
    target = tmp_path / "out.json"
    _, out, _ = run("--published", "truncated", *QUICK, "--json", target, capsys=capsys)
    lines = out.splitlines()
    headline = next(i for i, line in enumerate(lines) if line.startswith("phi = 0.378"))
    assert lines[headline + 1].startswith("worth    r = 2: 0.86 [0.77, 0.95]   r = 4: 1.50 [")
    assert "a step between 1 and more than one does" in lines[headline + 2]
    assert "log L +0.0224 [+0.0126, +0.0321]  1.5665e-04" in out
    fit = json.loads(target.read_text())["recipes"]["truncated"]
    assert list(fit["gains"]) == ["2", "4", "8"]
    assert fit["gains"]["2"]["value"] == pytest.approx(0.86, abs=0.01)
    assert fit["gains"]["2"]["ci"] == pytest.approx([0.773, 0.955], abs=0.01)
    assert fit["gains"]["2"]["value"] == fit["by_recurrence"]["2"]["factor"]
    assert fit["worth"]["verdict"] == "step"
    assert fit["worth"]["sentence"] == lines[headline + 2].strip()
    assert list(fit["laws"]) == ["gains", "offset", "gain_offset"]
    offset = fit["laws"]["offset"]
    assert offset["values"] == pytest.approx({"phi": 0.726, "offset": 0.0224}, abs=0.002)
    assert offset["intervals"]["offset"]["low"] > 0
    assert offset["tests"]["plain"]["delta_aicc"] > 50
    assert set(offset["law"]) == {"E", "A", "alpha", "B", "beta"}
    shares = fit["loss_gap"]["2"]["shares"]
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["being_looped"] > 0.6


def test_every_recipe_of_a_file_is_fitted(capsys):
    """One FIT per recipe found; the truncated one shares the r = 1 runs of its budgets."""
    status, out, err = run(RUNS_FILE, *QUICK, "--json", "-", capsys=capsys)
    assert status == 0
    recipes = json.loads(out)["recipes"]  # JSON alone on stdout; the report is on stderr
    assert {name: fit["n_runs"] for name, fit in recipes.items()} == {
        "baseline": 116,
        "truncated": 81,
    }
    assert recipes["truncated"]["phi"]["value"] == pytest.approx(0.3784, abs=2e-3)
    assert "phi = 0.378" in err


def test_options_reach_the_fit(capsys):
    """Each option of the fit changes what it names."""
    options = ("--recipe", "truncated", "--no-match-budgets", *QUICK, "--json", "-")
    _, out, _ = run(RUNS_FILE, *options, capsys=capsys)
    assert json.loads(out)["recipes"]["truncated"]["phi"]["value"] == pytest.approx(
        0.3515, abs=2e-3
    )
    options = ("--estimator", "least_squares", "--interval", "cluster", "--level", "0.8")
    _, out, _ = run("--published", *options, *QUICK, "--json", "-", capsys=capsys)
    fit = json.loads(out)["recipes"]["baseline"]
    assert fit["phi"]["value"] == pytest.approx(0.4645, abs=2e-3)
    assert (fit["phi"]["ci_kind"], fit["phi"]["ci_level"], fit["delta"]) == ("cluster", 0.8, None)
    _, out, _ = run("--published", "--fix", "phi=1", *QUICK, "--json", "-", capsys=capsys)
    fit = json.loads(out)["recipes"]["baseline"]
    assert fit["objective"] == pytest.approx(1.42018e-3, rel=1e-5)
    assert (fit["phi"]["value"], fit["phi"]["ci"], fit["held"]) == (1.0, None, {"phi": 1.0})


def test_a_sweep_with_a_corrupt_checkpoint(capsys, tmp_path):
    """The rest is fitted, the bad one is named, the exit status is 0."""
    for row in ROWS[:116]:
        write_run(tmp_path / "runs" / row["run"], record_of(row))
    bad = tmp_path / "runs" / "zz" / "checkpoints" / "last.ckpt"
    bad.parent.mkdir(parents=True)
    bad.write_bytes(b"PK not a checkpoint")
    target = tmp_path / "out.json"
    status, out, _ = run(tmp_path / "runs", *QUICK, "--json", target, capsys=capsys)
    assert status == 0
    assert "phi = 0.458" in out
    content = json.loads(target.read_text())
    assert [left["run"] for left in content["excluded"]] == [str(bad)]
    assert "truncated or damaged" in content["excluded"][0]["why"]


def test_the_runs_as_a_table_give_the_same_fit(capsys, tmp_path):
    """No command told the losses of runs; what `--table` writes is read again to the last digit."""
    for row in ROWS[:116]:
        write_run(tmp_path / "runs" / row["run"], record_of(row))
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    table = tmp_path / "runs.csv"
    status, _, err = run(
        tmp_path / "runs", *QUICK, "--table", table, "--json", first, capsys=capsys
    )
    assert (status, err) == (0, "")
    status, out, report = run(table, *QUICK, "--json", second, "--table", "-", capsys=capsys)
    assert (status, "phi = " in report) == (0, True)
    written, again = pd.read_csv(table), pd.read_csv(io.StringIO(out))
    pd.testing.assert_frame_equal(written, again, check_dtype=False, check_exact=True)
    assert first.read_text() == second.read_text()


def test_the_table_has_the_runs_that_were_fitted(capsys, tmp_path):
    """With those of r = 1 that a recipe shares; of no other recipe."""
    target = tmp_path / "runs.csv"
    assert run(RUNS_FILE, "--recipe=truncated", *QUICK, "--table", target, capsys=capsys)[0] == 0
    fitted = published("truncated")
    pd.testing.assert_series_equal(
        pd.read_csv(target)["loss"], fitted["loss"].reset_index(drop=True)
    )


def test_too_few_runs_say_so_without_a_number(capsys, tmp_path):
    """Exit status 0, since the answer is that the data cannot tell; every number null."""
    TABLE.iloc[[0, 5, 10, 15]].to_csv(tmp_path / "few.csv", index=False)
    target = tmp_path / "out.json"
    status, out, err = run(tmp_path / "few.csv", "--json", target, capsys=capsys)
    assert (status, err) == (0, "")
    assert "phi cannot be told from these 4 runs" in out
    assert "because: 4 runs for 6 parameters: at least 8 are needed" in out
    assert "phi =" not in out
    assert "best fit" not in out
    TABLE.iloc[:107:15][["recurrences", "n_once", "n_rec", "tokens", "loss"]].iloc[:7].to_csv(
        tmp_path / "seven.csv", index=False
    )
    _, seven, _ = run(tmp_path / "seven.csv", capsys=capsys)
    assert "phi cannot be told from these 7 runs\n" in seven
    fit = json.loads(target.read_text())["recipes"]["baseline"]
    assert fit["identifiable"] is False
    assert (fit["phi"]["value"], fit["phi"]["ci"], fit["objective"]) == (None, None, None)
    assert set(fit["law"].values()) == {None}


def test_a_doubtful_fit_is_no_bare_number(capsys, tmp_path):
    """A single recurrence count: the best fit is named as not to be believed, JSON has null."""
    TABLE[(TABLE["recurrences"] == 4) & (TABLE["recipe"] == "baseline")].to_csv(
        tmp_path / "one.csv", index=False
    )
    target = tmp_path / "out.json"
    status, out, _ = run(tmp_path / "one.csv", "--json", target, capsys=capsys)
    assert status == 0
    assert "do not believe it" in out
    assert "a single recurrence count, r = 4" in out
    assert json.loads(target.read_text())["recipes"]["baseline"]["phi"]["value"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no runs given"),
        (("nowhere",), "nowhere: no such file or directory"),
        (("empty",), "no runs in empty"),
        (("table.csv",), "table.csv lacks the column loss"),
        (("--published", "--fix", "phi"), "--fix phi: write it as NAME=VALUE"),
        (("--published", "--fix", "gamma=1"), "cannot fix 'gamma'"),
        (("--published", "--delta", "-1"), "delta -1 is not between"),
        (("--published", "--level", "95"), "level 95.0 is not between 0 and 1"),
        (("--published", "--recipe", "x"), "no run of recipe 'x': there are baseline, truncated"),
        (("--published", "other"), "'other' is no published recipe (baseline or truncated)"),
        (("--published", "table.csv"), "to fit runs of your own, leave out --published"),
        (("--published", "truncated", "--recipe", "baseline"), "name different recipes"),
        (("--published", "--tokenizer", "x"), "leave out --tokenizer"),
        (("--published", "--reference", "unshared"), "leave out --reference"),
        (("--published", "--fix", "phi=nan"), "--fix phi=nan: cannot fix phi at nan"),
        (("--published", "--fix", "phi=1e9"), "it lies between -2 and 3"),
        (("--published", "--fix", "alpha=1e300"), "it lies between 0.01 and 3"),
        (("--published", "--fix", "phi=1", "--fix", "phi=0"), "held already, at 1"),
        (("--published", "--delta", "1e-300"), "delta 1e-300 is not between"),
        (("--published", "--coverage", "0", "--out", "new"), "coverage over 0 data sets"),
        (("--published", "--coverage", "9", "--noise", "inf"), "noise inf is not between"),
        (("--published", "--coverage", "9", "--workers", "0"), "workers 0 is not between"),
        (("--published", "--noise", "0.1"), "give --coverage too"),
        (("--published", "--json", "empty"), "it is a directory"),
        (("--published", "--table", "empty"), "--table empty cannot be written: it is a directory"),
        (("--published", "--table", "-", "--json", "-"), "both write to -: choose two"),
        (("--published", "--table", "a", "--json", "a"), "both write to a: choose two"),
        (("--published", "--table", ""), "--table names no file"),
        (("--published", "--out", "new", "--json", "no/a.json"), "there is no directory no"),
        (("--published", "--json", "new.json", "--out", "table.csv/x"), "is no directory"),
        (("empty", "--published"), "--published stands alone"),
        (("--published", "--json", "no/such/dir.json"), "cannot be written"),
        (("--published", "--out", "table.csv"), "--out table.csv cannot be written"),
    ],
)
def test_mistakes_are_one_line_and_status_2(capsys, tmp_path, monkeypatch, arguments, words):
    """What, where, what to do; no traceback; nothing half-written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "table.csv").write_text("recurrences,n_once,n_rec,tokens\n1,2,3,4\n")
    quick = QUICK if "--published" in arguments and arguments[0] != "empty" else ()
    status, out, err = run(*arguments, *quick, capsys=capsys)
    assert (status, out) == (2, "")
    assert err.startswith("looped phi: error: ")
    assert err.count("\n") == 1
    assert words in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "table.csv"]


def test_the_choices_of_the_command_are_those_of_the_fitter():
    """They are named twice so that --help need not import numpy."""
    assert command.ESTIMATORS == ESTIMATORS
    assert set(command.INTERVALS) == set(KINDS)
    assert command.INTERVALS[0] == DEFAULT_KIND
    assert command.REFERENCES == REFERENCES


def test_help_is_cheap_and_the_fitter_never_imports_torch():
    """--help answers at once; a fit in a notebook must not pay for torch or lightning."""
    code = (
        "import sys; from looped.cli import main\n"
        "try: main(['phi', '--help'])\n"
        "except SystemExit: pass\n"
        "assert 'numpy' not in sys.modules\n"
        "from looped.scaling import read_runs, fit_law\n"
        "import looped.scaling.figures, looped.scaling.report, looped.scaling.published\n"
        "assert not {'torch', 'lightning'} & set(sys.modules)\n"
    )
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--match-budgets" in done.stdout
    assert time.monotonic() - started < 10


def test_every_option_is_documented():
    """An option without help is one nobody finds."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    for action in parser._actions:
        assert action.help, action.dest


@pytest.mark.parametrize(
    "losses",
    ["exact", "constant", "random"],
)
def test_strange_losses_end_in_json_without_nan(capsys, tmp_path, losses):
    """No noise at all, all losses equal, and pure noise: an answer, or a null with a reason."""
    table = synthetic(widths=(512, 1024), budgets=(1e18, 1e19))
    if losses == "constant":
        table["loss"] = 3.0
    if losses == "random":
        table["loss"] = np.random.default_rng(0).uniform(2, 4, len(table))
    table["budget_flops"] = [level.split()[0] for level in table["level"]]
    table.drop(columns="level").to_csv(tmp_path / "runs.csv", index=False)
    options = ("--out", tmp_path / "figures", "--json", "-", *QUICK)
    status, out, _ = run(tmp_path / "runs.csv", *options, capsys=capsys)
    assert status == 0
    fit = json.loads(out, parse_constant=pytest.fail)["recipes"]["baseline"]
    if losses == "exact":
        assert fit["phi"]["value"] == pytest.approx(TRUTH.phi, abs=1e-6)
        assert fit["phi"]["ci"] == pytest.approx([TRUTH.phi, TRUTH.phi], abs=1e-4)
    else:
        assert fit["phi"]["value"] is None
        assert fit["faults"]
