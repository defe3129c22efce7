"""Controls: kept apart from the loop, and fitted in place of r = 1 when asked for."""

import json

import pandas as pd
import pytest

from looped.cli import main
from looped.errors import UserError
from looped.scaling import fit_law, read_runs
from tests.scaling.grids import TRUTH, architecture, synthetic
from tests.scaling.records import record_of, write_run
from tests.scaling.test_runs import ROWS, reasons

SHARING = 0.03
"""Nats that sharing costs in the tests' world, whatever r; the wiring costs WIRING."""

WIRING = 0.02

LOOPED = next(row for row in ROWS if row["recurrences"] == 4)


def unshared_grid(recurrences=(2, 4, 8)) -> pd.DataFrame:
    """The unshared twins of a grid's looped runs, as a table gives them: every copy counted."""
    grid = synthetic(recurrences=recurrences)
    grid["n_rec"] = [
        r * architecture(width, r).parameter_groups().n_rec
        for width, r in zip(grid["width"], grid["recurrences"], strict=True)
    ]
    size = grid["n_once"] + grid["n_rec"]
    grid["loss"] = TRUTH.loss_of_size(size, grid["tokens"]) + WIRING
    return grid.assign(recipe="baseline-unshared", control="unshared")


@pytest.fixture
def table(tmp_path):
    """Plain runs, looped ones that pay for wiring and sharing, and the unshared control."""
    grid = synthetic()
    grid["loss"] += (WIRING + SHARING) * (grid["recurrences"] > 1)
    both = pd.concat([grid, unshared_grid()], ignore_index=True)
    both["budget_flops"] = [level.split()[0] for level in both["level"]]
    path = tmp_path / "runs.csv"
    both.drop(columns=["level", "run"]).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("model", "what"),
    [
        ({"shared": False}, "unshared blocks"),
        ({"recurrences": 1, "injection": "linear"}, "wiring without a loop"),
        ({"recurrences": 1, "streams": 2}, "wiring without a loop"),
    ],
    ids=str,
)
def test_controls_are_no_points_unless_asked_for(tmp_path, model, what):
    """A control taken for a looped or a plain run would move phi by what it is to separate."""
    row = LOOPED if "shared" in model else ROWS[1]
    control = record_of(row | {"run": "control"})
    control.model |= model
    write_run(tmp_path / "plain", record_of(ROWS[0]))
    write_run(tmp_path / "control", control)
    pool = read_runs(tmp_path)
    assert pool.table["run"].tolist() == ["run000"]
    assert what in reasons(pool)["control"]
    assert "--reference" in reasons(pool)["control"]


def test_an_unshared_run_is_one_pass_of_unique_blocks(tmp_path):
    """R = 1 with N_rec of every copy and the loss at the recurrences it was trained with."""
    control = record_of(LOOPED, recipe="baseline-unshared")
    control.model |= {"shared": False}
    control.params["n_rec"] = 4 * int(LOOPED["n_rec"])
    write_run(tmp_path / "control", control)
    write_run(tmp_path / "looped", record_of(LOOPED | {"run": "twin", "loss": 3.0}))
    write_run(tmp_path / "plain", record_of(ROWS[0] | {"run": "plain"}))
    pool = read_runs(tmp_path, reference="unshared")
    rows = pool.table.set_index("run")
    row = rows.loc[LOOPED["run"]]
    assert (row["recurrences"], row["n_rec"]) == (1, 4 * LOOPED["n_rec"])
    assert row["loss"] == LOOPED["loss"]
    assert set(rows.index) == {LOOPED["run"], "twin"}
    assert reasons(pool) == {"plain": "r = 1: the reference are the unshared runs"}
    assert "r = 1 stands for 1 unshared runs here" in pool.warnings[0]
    assert pool.recipes == ["baseline"]
    assert len(pool.of_recipe("baseline")) == 2


def test_one_pass_without_sharing_is_a_plain_run(tmp_path):
    """shared: false says nothing of a model with a single pass and no wiring."""
    plain = record_of(ROWS[0])
    plain.model |= {"shared": False}
    write_run(tmp_path / "plain", plain)
    assert len(read_runs(tmp_path).table) == 1


def test_a_recipe_takes_its_own_control(tmp_path):
    """Each is measured against the control that bears its name, else against the baseline's."""
    looped = pd.DataFrame(ROWS).query("recipe == 'baseline' and recurrences > 1").iloc[:3]
    table = pd.concat(
        looped.assign(recipe=name, control="unshared" if name.endswith("-unshared") else "")
        for name in ("new", "old", "new-unshared", "baseline-unshared", "other-unshared")
    )
    table.to_csv(tmp_path / "runs.csv", index=False)
    pool = read_runs(tmp_path / "runs.csv", reference="unshared")
    assert set(pool.of_recipe("new")["recipe"]) == {"new", "new-unshared"}
    assert set(pool.of_recipe("old")["recipe"]) == {"old", "baseline-unshared"}
    pool.table.loc[pool.table["recipe"] == "baseline-unshared", "recipe"] = "mine"
    assert set(pool.of_recipe("old")["recipe"]) == {
        *("old", "new-unshared", "mine", "other-unshared")
    }


def test_a_table_without_the_column_knows_controls_by_name(tmp_path):
    """They would stand in for the plain runs of every recipe that has none, unasked."""
    runs = synthetic().drop(columns="run", errors="ignore")
    plain, looped = runs[runs["recurrences"] == 1], runs[runs["recurrences"] > 1]
    tables = {"alone": (plain, looped.assign(recipe="truncated"))}
    wired = plain.assign(recipe="baseline-injected", loss=plain["loss"] + WIRING)
    tables["beside"] = (*tables["alone"], wired)
    fitted = {}
    for name, parts in tables.items():
        pd.concat(parts).to_csv(tmp_path / f"{name}.csv", index=False)
        pool = read_runs(tmp_path / f"{name}.csv")
        fitted[name] = sorted(pool.of_recipe("truncated")["loss"])
    assert fitted["beside"] == fitted["alone"]
    assert [why.why for why in pool.excluded] == [
        "a control (wiring without a loop): fitted only with --reference injected"
    ] * len(wired)


def test_the_reference_decides_what_phi_holds(table):
    """Against unshared runs the wiring is in both, so phi is moved by sharing alone."""
    fits = {}
    for reference in ("plain", "unshared"):
        pool = read_runs(table, reference=reference)
        fits[reference] = fit_law(pool.of_recipe("baseline"), estimator="least_squares")
    assert fits["plain"].num_runs == 96
    assert fits["unshared"].num_runs == 144
    assert fits["plain"].phi < fits["unshared"].phi < TRUTH.phi
    free = unshared_grid().assign(recurrences=1)
    looped = synthetic(recurrences=(2, 4, 8))
    looped["loss"] += WIRING
    without_sharing = fit_law(pd.concat([free, looped]), estimator="least_squares")
    assert without_sharing.phi == pytest.approx(TRUTH.phi, abs=0.02)


def test_the_command_takes_the_reference(table, capsys):
    """Phi with the unshared runs in place of r = 1, and a warning that says so."""
    options = ("--resamples", "10", "--estimator", "least_squares", "--json", "-")
    assert main(["phi", str(table), "--reference", "unshared", *options]) == 0
    content = json.loads(capsys.readouterr().out)
    assert list(content["recipes"]) == ["baseline"]
    assert content["recipes"]["baseline"]["n_runs"] == 144
    assert "r = 1 stands for 72 unshared runs here, not for plain ones" in content["warnings"]
    assert len(content["excluded"]) == 24


def test_a_reference_that_is_not_there_is_named(table, tmp_path):
    """No injected run, an unknown reference, a control of another name in a table."""
    with pytest.raises(UserError, match="none of them has wiring without a loop"):
        read_runs(table, reference="injected")
    with pytest.raises(UserError, match="reference 'twin' is unknown: choose plain, unshared"):
        read_runs(table, reference="twin")
    odd = pd.read_csv(table).assign(recipe="baseline", control=["shared", *[""] * 167])
    odd.to_csv(tmp_path / "odd.csv", index=False)
    pool = read_runs(tmp_path / "odd.csv")
    assert reasons(pool) == {"odd.csv:2": "control is shared: neither unshared nor injected"}
