"""`looped compare`, from the command line."""

import json
from dataclasses import replace

import pandas as pd
import pytest

from looped.cli import main
from looped.scaling import RunPool, fit_law, read_runs
from looped.scaling.compare import compare
from looped.scaling.compare_report import verdict
from looped.scaling.published import RUNS_FILE
from tests.scaling.grids import synthetic


def run(*arguments, capsys) -> tuple[int, str, str]:
    status = main(["compare", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_the_published_recipes_in_words(capsys, tmp_path):
    """Both phis, the difference with its interval, the loss beside it, the verdict."""
    target = tmp_path / "out.json"
    options = ("--published", "--resamples", "200", "--json", target)
    status, out, err = run("baseline", "truncated", *options, capsys=capsys)
    assert (status, err) == (0, "")
    assert "baseline: phi = 0.452  (80 runs, 16 cells)" in out
    assert "truncated: phi = 0.378  (81 runs, 16 cells)" in out
    assert "delta phi = -0.073  [" in out
    assert "4 shared cells of r = 1" in out
    assert "the best loss of truncated at equal budget is lower" in out
    content = json.loads(target.read_text())
    assert content["delta_phi"]["value"] == pytest.approx(-0.0733, abs=2e-3)
    low, high = content["delta_phi"]["ci"]
    assert low < content["delta_phi"]["value"] < high
    low, high = content["loss"]["ci"]
    assert low < content["loss"]["difference"] < high < 0
    assert f"  4.64e+17 FLOPs: {content['loss']['by_level']['4.64e+17 FLOPs']:+.4f}, 1e+18" in out
    assert (
        f"{content['loss']['difference']:+.4f} nats on average  [{low:+.4f}, {high:+.4f}]  (r ="
        in out
    )
    assert content["verdict"] in ("better", "worse", "not distinguishable")
    assert "delta offset = +0.0185  [+0.0056, +0.0315]  (95 % both together, joint" in out
    assert "r = 2: x 0.68 [0.59, 0.77]" in out
    assert "p = 0.00023 (delta AICc +108.2) against offset, p = 1.2e-05" in out
    assert "verdict: being looped costs more in truncated, what a recurrence is worth is not" in out
    assert "depends on the law: plain not distinguishable (-0.073), offset better (+0.216)" in out
    other = content["other_estimator"]
    assert (other["name"], other["verdict"]) == ("least_squares", "not distinguishable")
    assert other["delta_phi"]["ci"][0] < other["delta_phi"]["value"] < other["delta_phi"]["ci"][1]
    assert content["pair"]["moved"] == ["being looped"]
    assert content["pair"]["depends_on_law"] is True
    offset = content["laws"]["offset"]["differences"]["offset"]
    assert offset["simultaneous_ci"][0] < offset["ci"][0] < offset["value"]
    assert content["laws"]["offset"]["plain"]["delta_aicc"] > 50


@pytest.fixture(scope="module")
def twins():
    """A recipe against its copy."""
    grid = synthetic(noise=0.003, budgets=(1e18, 2.15e18, 1e19))
    pool = RunPool(pd.concat([grid, grid.assign(recipe="new")], ignore_index=True), [])
    return compare(pool, "baseline", second="new", resamples=1)


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        (
            {"per recurrence": "better"},
            "a recurrence is worth more in new, what being looped costs",
        ),
        ({"being looped": "better"}, "being looped costs less in new, what a recurrence is worth"),
        (
            {"per recurrence": "worse", "being looped": "worse"},
            "a recurrence is worth less in new and being looped costs more in new; the best",
        ),
        ({}, "the loops are not distinguishable by these runs"),
        ({"differ": True}, "the loops differ, but whether in what a recurrence is worth or in"),
        (None, "the loop is worse in new: a recurrence is worth less"),
    ],
)
def test_the_verdict_in_words(twins, moved, words):
    """Which of the two moved and where to; without the pair the verdict on phi."""
    pair = None
    if moved is not None:
        pair = replace(
            twins.pair,
            per_recurrence=moved.get("per recurrence", "not distinguishable"),
            being_looped=moved.get("being looped", "not distinguishable"),
            moved=tuple(name for name in moved if name != "differ"),
            differ=bool(moved),
        )
    line = verdict(replace(twins, pair=pair, verdict="worse"), "new")
    assert line.startswith(f"verdict: {words}")


@pytest.mark.parametrize(
    ("value", "ends", "words"),
    [
        (-0.02, (-0.03, -0.01), "at equal budget is lower"),
        (0.02, (0.01, 0.03), "at equal budget is higher"),
        (-0.02, (-0.05, 0.01), "at equal budget is not distinguishable by these runs"),
        (-0.02, None, "is lower at the one budget that both have, which alone does not tell"),
    ],
)
def test_the_verdict_on_the_loss_needs_an_interval(twins, value, ends, words):
    """It was told by the sign of the mean alone."""
    loss = replace(twins.loss, value=value, ends=ends)
    assert verdict(replace(twins, loss=loss), "new").endswith(f"; the best loss of new {words}")


def test_recipes_without_a_common_recurrence_count(capsys, tmp_path):
    """It was a division by zero."""
    grid = synthetic(noise=0.003)
    other = grid[grid["recurrences"] == 8].assign(recipe="new")
    both = pd.concat([grid[grid["recurrences"] < 8], other])
    both.drop(columns=["level", "run"]).to_csv(tmp_path / "a.csv", index=False)
    status, out, err = run("baseline", "new", tmp_path / "a.csv", "--resamples=20", capsys=capsys)
    assert (status, err) == (0, "")
    assert "best loss: nothing to compare, no r > 1 that both have at one budget" in out


def test_sources_follow_the_recipes(capsys):
    """The same from a file, JSON alone on standard output."""
    options = (RUNS_FILE, "--resamples", "50", "--json", "-")
    status, out, _ = run("truncated", "baseline", *options, capsys=capsys)
    assert status == 0
    assert json.loads(out)["delta_phi"]["value"] == pytest.approx(+0.0733, abs=2e-3)


def test_a_run_without_a_budget_is_warned_of_and_changes_no_other_cell(capsys, tmp_path):
    """One such row turned -0.0218 nats at equal budget into +0.0854, without a word."""
    (tmp_path / "odd.csv").write_text(
        "recipe,recurrences,n_once,n_rec,tokens,loss\nbaseline,4,3e7,2e7,1e9,3.3\n"
    )
    options = ("--resamples", "20")
    status, out, _ = run(
        "baseline", "truncated", RUNS_FILE, tmp_path / "odd.csv", *options, capsys=capsys
    )
    assert status == 0
    assert "(80 runs, 16 cells)" in out
    assert "best loss at equal budget: -0.0218 nats" in out
    assert "warning: the budget of 1 of" in out


def test_token_levels_are_not_called_budgets(capsys, tmp_path):
    """A grid of equal token counts knows nothing of equal budgets."""
    grid = synthetic(noise=0.003, token_counts=(1e9, 4e9, 1.6e10))
    looped = grid[grid["recurrences"] > 1].assign(recipe="new", loss=lambda t: t["loss"] - 0.01)
    pd.concat([grid, looped]).drop(columns=["level", "run"]).to_csv(tmp_path / "a.csv", index=False)
    options = ("--resamples", "20")
    status, out, _ = run("baseline", "new", tmp_path / "a.csv", *options, capsys=capsys)
    assert status == 0
    assert "best loss at equal token count: -0.0100 nats" in out
    assert "equal budget" not in out


def test_sources_may_follow_options(capsys):
    """`looped compare A B --resamples 20 runs.csv` was refused as an unknown argument."""
    status, out, _ = run(
        "baseline", "truncated", "--resamples", "20", RUNS_FILE, "--seed", "1", capsys=capsys
    )
    assert status == 0
    assert "truncated: phi = 0.378" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("baseline",), "the following arguments are required: B"),
        (("baseline", "truncated"), "no runs given"),
        (("baseline", "truncated", "--published", "--json", "no/a"), "there is no directory no"),
        (("baseline", "truncated", "--published", "--level", "2"), "level 2.0 is not between"),
        (("baseline", "other", "--published"), "no run of recipe 'other'"),
        (("baseline", "baseline", "--published"), "cannot be compared with itself"),
        (("baseline", "truncated", "nowhere"), "nowhere: no such file"),
    ],
)
def test_mistakes_are_one_line_and_status_2(capsys, arguments, words):
    """What, where, what to do; no traceback."""
    status, out, err = run(*arguments, capsys=capsys)
    assert (status, out) == (2, "")
    assert err.startswith("looped compare: error: ")
    assert err.count("\n") == 1
    assert words in err


def test_what_is_held_is_held_in_both_fits(capsys, tmp_path):
    """The difference is that of the two fits that `looped phi --fix` makes of the same tables."""
    table = pd.concat([synthetic(noise=0.003), synthetic(noise=0.003, seed=1).assign(recipe="new")])
    source = tmp_path / "runs.csv"
    table.to_csv(source, index=False)
    options = ("--fix", "E=1.4", "--fix", "alpha=0.3", "--resamples", "10", "--json", "-")
    status, out, _ = run("baseline", "new", source, *options, capsys=capsys)
    assert status == 0
    pool, held = read_runs(source), {"E": 1.4, "alpha": 0.3}
    first, second = (fit_law(pool.of_recipe(name), fix=held) for name in ("baseline", "new"))
    found = json.loads(out)["delta_phi"]["value"]
    assert found == pytest.approx(second.phi - first.phi, abs=1e-9)
    free = [fit_law(pool.of_recipe(name)).phi for name in ("baseline", "new")]
    assert found != pytest.approx(free[1] - free[0], abs=1e-6)


def test_phi_itself_cannot_be_held(capsys):
    status, _, err = run("baseline", "truncated", "--published", "--fix=phi=1", capsys=capsys)
    assert status == 2
    assert "phi is what is compared" in err
    assert err.count("\n") == 1
