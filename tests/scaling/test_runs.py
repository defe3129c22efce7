"""Reading runs: each once, every omission named, one bad file never the end."""

import json

import numpy as np
import pandas as pd
import pytest

from looped.errors import UserError
from looped.scaling import read_runs
from looped.scaling.published import RUNS_FILE, published_runs
from tests.scaling.records import record_of, save_checkpoint, write_run

TABLE = pd.read_csv(RUNS_FILE).assign(run=lambda t: [f"run{i:03d}" for i in t.index])
ROWS = TABLE.to_dict("records")


def reasons(pool) -> dict[str, str]:
    return {left.run: left.why for left in pool.excluded}


def test_a_sweep_gives_one_point_per_run(tmp_path):
    """last.ckpt, copies and nested names are one run; the row is what the record says."""
    for row in ROWS[:3]:
        write_run(
            tmp_path / "sweep" / row["run"],
            record_of(row),
            checkpoints=("last.ckpt", "last-v1.ckpt", "val/loss=3.1.ckpt"),
        )
    elsewhere = tmp_path / "sweep" / "run000" / "kept"
    elsewhere.mkdir()
    save_checkpoint(elsewhere / "best.ckpt", record_of(ROWS[0]))
    pool = read_runs(tmp_path)
    assert pool.excluded == []
    assert pool.table["run"].tolist() == ["run000", "run001", "run002"]
    for name in ("recurrences", "n_once", "n_rec", "tokens", "loss", "width", "budget_flops"):
        assert pool.table[name].tolist() == [row[name] for row in ROWS[:3]]
    assert set(pool.table["level"]) == {"4.64e+17 FLOPs"}


def test_without_run_json_the_checkpoint_speaks(tmp_path):
    """A copied checkpoints folder, and a flat folder of many runs' checkpoints, are enough."""
    home = write_run(tmp_path / "a", record_of(ROWS[0]), checkpoints=("last.ckpt",))
    (home / "run.json").unlink()
    (tmp_path / "flat").mkdir()
    for row in ROWS[1:4]:
        save_checkpoint(tmp_path / "flat" / f"{row['run']}.ckpt", record_of(row))
    pool = read_runs([tmp_path])
    assert sorted(pool.table["run"]) == ["run000", "run001", "run002", "run003"]
    alone = read_runs([home / "checkpoints" / "last.ckpt", home])
    assert alone.table["run"].tolist() == ["run000"]
    assert alone.excluded == []


def test_the_newest_checkpoint_of_a_run_is_its_point(tmp_path):
    """An earlier checkpoint in the same folder must not be a second, undertrained point."""
    old = record_of(ROWS[0], status="running", progress={"step": 50, "tokens": 5})
    old.validation = old.validation[:1]
    save_checkpoint(tmp_path / "step=50.ckpt", old)
    save_checkpoint(tmp_path / "last.ckpt", record_of(ROWS[0]))
    pool = read_runs(tmp_path)
    assert pool.table["loss"].tolist() == [ROWS[0]["loss"]]
    assert pool.excluded == []


def test_sources_may_be_mixed(tmp_path):
    """Sweep directory, checkpoint and CSV in one call make one pool."""
    write_run(tmp_path / "sweep" / "a", record_of(ROWS[0]))
    save_checkpoint(tmp_path / "b.ckpt", record_of(ROWS[1]))
    TABLE.iloc[2:5].drop(columns="run").to_csv(tmp_path / "more.csv", index=False)
    pool = read_runs([tmp_path / "sweep", tmp_path / "b.ckpt", tmp_path / "more.csv"])
    assert sorted(pool.table["run"]) == [
        *("more.csv:2", "more.csv:3", "more.csv:4", "run000", "run001")
    ]


def test_one_bad_file_never_stops_the_rest(tmp_path):
    """A truncated checkpoint is named with its reason; its run stands if run.json is whole."""
    for row in ROWS[:3]:
        write_run(tmp_path / row["run"], record_of(row), checkpoints=("last.ckpt",))
    broken = tmp_path / "run001" / "checkpoints" / "last.ckpt"
    broken.write_bytes(broken.read_bytes()[:500])
    lost = tmp_path / "run002"
    (lost / "run.json").write_text("{")
    (lost / "checkpoints" / "last.ckpt").write_bytes(b"nothing")
    pool = read_runs(tmp_path)
    assert pool.table["run"].tolist() == ["run000", "run001"]
    found = reasons(pool)
    assert "truncated" in found[str(broken)]
    assert "not JSON" in found[str(lost / "run.json")]
    assert "truncated" in found[str(lost / "checkpoints" / "last.ckpt")]


def test_what_is_no_point_is_listed_with_its_reason(tmp_path):
    """Not complete, diverged, NaN, never validated, without a size: each by name."""
    no_validation = record_of(ROWS[4])
    no_validation.validation = []
    no_size = record_of(ROWS[5], params={"n_once": 3})
    progress = {"step": 30, "tokens": 9, "planned_steps": 100}
    write_run(tmp_path / "good", record_of(ROWS[0]))
    write_run(tmp_path / "half", record_of(ROWS[1], status="running", progress=progress))
    write_run(tmp_path / "diverged", record_of(ROWS[2], status="diverged"))
    write_run(tmp_path / "nan", record_of(ROWS[3], loss=None))
    write_run(tmp_path / "unseen", no_validation)
    write_run(tmp_path / "sizeless", no_size)
    pool = read_runs(tmp_path)
    assert pool.table["run"].tolist() == ["run000"]
    assert reasons(pool) == {
        "run001": "not complete: running at step 30 of 100",
        "run002": "diverged",
        "run003": "its validation loss is not a finite number",
        "run004": "no validation at its own recurrence count",
        "run005": "its record has params.n_rec = None: not a whole number",
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"progress": {"step": "100"}}, "progress.step = 100: not a whole number"),
        ({"progress": {"step": [1]}}, "progress.step = [1]"),
        ({"progress": {"epochs": "half"}}, "progress.epochs = half: no number"),
        ({"progress": {"tokens": 0}}, "tokens is 0: not positive"),
        ({"progress": {"tokens": -5}}, "tokens is -5: not positive"),
        ({"progress": {"tokens": True}}, "progress.tokens = True: not a whole number"),
        ({"run": ["a"]}, "run = "),
        ({"recipe": {"a": 1}}, "recipe = "),
        ({"recipe": None}, "recipe = None"),
        ({"seed": [1]}, "seed = [1]: not a whole number"),
        ({"params": {"n_rec": 1e30}}, "params.n_rec = 1e+30"),
        ({"params": {"n_rec": 10**400}}, "n_rec is 1000"),
        ({"params": {"n_once": 0, "n_rec": 0}}, "no parameters"),
        ({"flops": {"budget": "1e18"}}, "flops.budget = 1e18: no number"),
        ({"flops": {"budget": 10**400}}, "flops.budget = 1000"),
        ({"flops": {"convention": ["paper"]}}, "flops.convention = "),
        ({"model": {"recurrences": 0}}, "recurrences is 0: not positive"),
        ({"model": {"recurrences": -2}}, "recurrences is -2: not positive"),
        ({"loss": 1e300}, "loss is 1e+300: not between"),
        ({"loss": 0}, "loss is 0: not positive"),
        ({"loss": -1.5}, "loss is -1.5: not positive"),
        ({"loss": "3.1"}, "3.1"),
    ],
    ids=str,
)
def test_one_damaged_record_never_stops_the_rest(tmp_path, change, words):
    """A value of the wrong type or size in one run.json ended the fit of all others."""
    for row in ROWS[:2]:
        write_run(tmp_path / row["run"], record_of(row))
    content = record_of(ROWS[2]).as_json()
    for name, value in change.items():
        if name == "loss":
            content["validation"][-1]["loss"] = value
        elif isinstance(content[name], dict):
            content[name] |= value
        else:
            content[name] = value
    for entry in content["validation"]:
        entry["recurrences"] = content["model"]["recurrences"]
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "run.json").write_text(json.dumps(content))
    pool = read_runs(tmp_path)
    assert pool.table["run"].tolist() == ["run000", "run001"]
    (left,) = pool.excluded
    assert "run002" in left.run or "bad" in left.run
    assert words in left.why


def test_json_that_is_no_record_never_stops_the_rest(tmp_path):
    """Infinity as a size, and nesting that exhausts the reader's stack, are named as well."""
    write_run(tmp_path / "good", record_of(ROWS[0]))
    home = write_run(tmp_path / "infinite", record_of(ROWS[1]))
    text = (home / "run.json").read_text()
    size = f'"n_rec": {ROWS[1]["n_rec"]}'
    assert size in text
    (home / "run.json").write_text(text.replace(size, '"n_rec": 1e400'))
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "run.json").write_text("[" * 100_000)
    pool = read_runs(tmp_path)
    assert pool.table["run"].tolist() == ["run000"]
    assert {why.split(":")[0] for why in reasons(pool).values()} == {
        "its record has params.n_rec = inf",
        "nested too deeply to be a record",
    }


def test_unknown_streams_are_no_control(tmp_path):
    """model.streams null is a plain loop, not the end of the fit."""
    model = {"recurrences": int(ROWS[0]["recurrences"]), "streams": None}
    write_run(tmp_path / "a", record_of(ROWS[0], model=model))
    assert len(read_runs(tmp_path).table) == 1


def test_run_json_and_checkpoint_must_agree(tmp_path):
    """Two experiments in one directory: neither may silently stand for the other."""
    home = write_run(tmp_path / "a", record_of(ROWS[0]))
    write_run(tmp_path / "b", record_of(ROWS[1]))
    changed = record_of(ROWS[0], model={"recurrences": 1, "width": 999})
    save_checkpoint(home / "last.ckpt", changed)
    pool = read_runs(tmp_path)
    assert pool.table["run"].tolist() == ["run001"]
    (left,) = pool.excluded
    assert "model.width" in left.why
    assert "999" in left.why
    assert "384" in left.why


def test_copies_count_once(tmp_path):
    """A sweep copied to another place, a row written twice: the second is named as duplicate."""
    for place in ("here", "there"):
        write_run(tmp_path / place / "a", record_of(ROWS[0]))
    TABLE.iloc[[1, 1]].drop(columns="run").to_csv(tmp_path / "twice.csv", index=False)
    pool = read_runs([tmp_path, tmp_path / "twice.csv", tmp_path / "twice.csv"])
    assert len(pool.table) == 2
    assert sorted(left.why.split(" of ")[0] for left in pool.excluded) == ["duplicate"] * 2


@pytest.mark.parametrize(
    ("section", "value", "column", "words"),
    [
        ("flops", {"convention": "causal"}, "convention", "FLOP convention"),
        ("data", {"fingerprint": "xyz"}, "fingerprint", "validation data fingerprint"),
        ("data", {"tokenizer": "bpe-1024"}, "tokenizer", "tokenizer"),
    ],
)
def test_a_mixed_pool_is_refused_or_selected(tmp_path, section, value, column, words):
    """Losses on other data or FLOPs by another rule are not comparable: both values are named."""
    for row in ROWS[:3]:
        write_run(tmp_path / row["run"], record_of(row))
    other = record_of(ROWS[3])
    getattr(other, section).update(value)
    write_run(tmp_path / "other", other)
    (new,) = value.values()
    old = getattr(record_of(ROWS[0]), section)[column]
    with pytest.raises(UserError, match=words) as refusal:
        read_runs(tmp_path)
    assert f"3 have {old!r} and 1 have {new!r}" in str(refusal.value)
    assert f"--{column}" in str(refusal.value)
    pool = read_runs(tmp_path, **{column: old})
    assert len(pool.table) == 3
    assert reasons(pool) == {"run003": f"other {words}: {new!r}, not {old!r}"}


def test_plain_runs_are_shared_by_recipes():
    """The rule that decides between phi = 0.38 and 0.35 for truncation."""
    pool = published_runs()
    assert pool.recipes == ["baseline", "truncated"]
    assert len(pool.of_recipe("baseline")) == 116
    matched = pool.of_recipe("truncated")
    assert len(matched) == 81
    assert (matched["recurrences"] == 1).sum() == 20
    assert len(pool.of_recipe("truncated", match_budgets=False)) == 90
    # A recipe's own plain runs are its own whatever their budgets.
    scattered = type(pool)(pool.table.assign(level=[f"{i} FLOPs" for i in pool.table.index]), [])
    assert len(scattered.of_recipe("baseline")) == 116
    with pytest.raises(UserError, match="no run of recipe 'other': there are baseline, truncated"):
        pool.of_recipe("other")


def test_a_recipe_with_plain_runs_of_its_own_keeps_to_them():
    """A recipe that changes r = 1 as well must not be compared with another recipe's r = 1."""
    pool = published_runs()
    own = pool.table[pool.table["recurrences"] == 1].assign(recipe="truncated")
    both = type(pool)(pd.concat([pool.table, own], ignore_index=True), [])
    assert set(both.of_recipe("truncated")["recipe"]) == {"truncated"}
    assert set(both.of_recipe("baseline")["recipe"]) == {"baseline"}


def test_levels_are_budgets_or_token_counts(tmp_path):
    """Cells need the right horizon: planned budgets differ slightly, and some grids fix tokens."""
    frame = TABLE.iloc[:6].drop(columns="run")
    frame["budget_flops"] = [1.000e18, 1.004e18, 0.998e18, 2e18, 2.01e18, 2e18]
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert read_runs(tmp_path / "a.csv").table["level"].nunique() == 2
    frame["tokens"] = [3e5, 3e5, 3.01e5, 3e5, 8e5, 8e5]
    frame["budget_flops"] = np.geomspace(1e15, 1e17, 6)
    frame.to_csv(tmp_path / "b.csv", index=False)
    levels = read_runs(tmp_path / "b.csv").table["level"].tolist()
    assert levels == ["3e+05 tokens"] * 4 + ["8e+05 tokens"] * 2


@pytest.mark.parametrize("budget", ["", "0", "-1e18", "inf", "much"])
def test_a_run_without_a_budget_never_regroups_the_others(tmp_path, budget):
    """One row without a budget made every run a cell of its own, without a word."""
    frame = TABLE.drop(columns="run").astype({"budget_flops": object, "flops_per_token": object})
    odd = frame.iloc[[30]].assign(loss=3.3, tokens=1e9, budget_flops=budget, flops_per_token="")
    pd.concat([frame, odd]).to_csv(tmp_path / "a.csv", index=False)
    pool = read_runs(tmp_path / "a.csv")
    whole = published_runs()
    assert pool.table["level"].tolist() == [*whole.table["level"], "1e+09 tokens"]
    (warning,) = pool.warnings
    assert f"the budget of 1 of {len(pool.table)} runs is not known" in warning
    assert whole.warnings == []


def test_a_table_without_a_needed_column_names_it(tmp_path):
    """The remedy needs the name of the column and of the file."""
    path = tmp_path / "runs.csv"
    TABLE.drop(columns=["n_rec", "loss"]).to_csv(path, index=False)
    with pytest.raises(UserError, match=r"runs\.csv lacks the columns n_rec, loss"):
        read_runs(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="is not a CSV table"):
        read_runs(path)


def test_lines_that_cannot_be_fitted_are_named(tmp_path):
    """NaN, text, zero and fractions are left out by line number; blank lines are no runs."""
    path = tmp_path / "runs.csv"
    lines = [
        "recurrences,n_once,n_rec,tokens,loss",
        "1,100,200,5000,3.1",
        "2,100,200,5000,nan",
        "2,100,many,5000,3.2",
        "2,100,200,0,3.2",
        "2.5,100,200,5000,3.2",
        "",
        "2,100,200,5000,inf",
        "2,100,200,5000,3.0",
    ]
    path.write_text("\n".join(lines))
    pool = read_runs(path)
    assert pool.table["run"].tolist() == ["runs.csv:2", "runs.csv:9"]
    assert pool.table["recipe"].tolist() == ["baseline", "baseline"]
    assert reasons(pool) == {
        "runs.csv:3": "loss is nan: not a finite number",
        "runs.csv:4": "n_rec is many: not a finite number",
        "runs.csv:5": "tokens is 0: not positive",
        "runs.csv:6": "recurrences is 2.5: not a whole number",
        "runs.csv:8": "loss is inf: not a finite number",
    }


def test_sizes_that_overflow_are_named(tmp_path):
    """1e308 parameters, twice, and a loss of 1e300 ended the fit of all other lines."""
    path = tmp_path / "runs.csv"
    lines = [
        "recurrences,n_once,n_rec,tokens,loss",
        "1,100,200,5000,3.1",
        "2,1e308,1e308,5000,3.1",
        "2,100,200,5000,1e300",
    ]
    path.write_text("\n".join(lines))
    pool = read_runs(path)
    assert len(pool.table) == 1
    assert reasons(pool) == {
        "runs.csv:3": "n_once is 1e308: not between 0 and 1e+18",
        "runs.csv:4": "loss is 1e300: not between 1e-06 and 10000",
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("recurrences,n_once,n_rec,tokens,loss\n1,2,3,4,5,\n1,2,3,4,6,\n", "more fields"),
        ("recurrences,n_once,n_rec,tokens,loss,loss\n1,2,3,4,5,6\n", "more than one column loss"),
        ("recurrences,n_once,n_rec,tokens,loss\n1,2,3,4,5\n1,2,3,4,5,6,7\n", "not a CSV table"),
    ],
)
def test_a_table_of_another_shape_is_refused_in_one_line(tmp_path, text, words):
    """Pandas took the first column for names, dropped the end of lines, or said so in two lines."""
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(UserError, match=words) as refusal:
        read_runs(tmp_path / "a.csv")
    assert "\n" not in str(refusal.value)


def test_nothing_to_read_is_an_error_that_says_where(tmp_path):
    """No such path, an empty directory, a foreign file, and runs of which none is usable."""
    with pytest.raises(UserError, match="missing: no such file or directory"):
        read_runs(tmp_path / "missing")
    with pytest.raises(UserError, match="no runs in"):
        read_runs(tmp_path)
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(UserError, match=r"notes.txt is neither"):
        read_runs(tmp_path / "notes.txt")
    write_run(tmp_path / "a", record_of(ROWS[0], status="diverged"))
    with pytest.raises(UserError, match=r"no usable run in .*: all 1 were left out.*diverged"):
        read_runs(tmp_path)
