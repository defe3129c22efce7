"""`looped sweep status`: counts, FLOPs, what phi could already say; without training."""

import json
import re

import numpy as np
import pytest

from looped.cli import main
from looped.record import Validation
from looped.scaling.prior import PUBLISHED
from looped.sweeps.failures import record_failure
from looped.sweeps.grid import read_grid
from looped.sweeps.locks import take_lock
from looped.sweeps.plan import plan_sweep
from looped.sweeps.sweep_file import register
from tests.test_record import a_record


def _finish(run, *, status="complete", noise=0.0, flops=None):
    """The record that training this run would leave, its loss on the published law."""
    groups = run.architecture.parameter_groups()
    loss = PUBLISHED.law.loss(
        run.architecture.recurrences, groups.n_once, n_rec=groups.n_rec, tokens=run.plan.tokens
    )
    entry = Validation(
        step=run.plan.steps,
        tokens=run.plan.tokens,
        train_flops=run.plan.train_flops,
        loss=float(loss) + noise,
        bits_per_byte=None,
        tokens_evaluated=1000,
        recurrences=run.architecture.recurrences,
    )
    run.directory.mkdir(parents=True)
    a_record(
        run=run.name,
        recipe=run.recipe,
        status=status,
        started=run.name,
        model=run.architecture.as_record(),
        params=groups.as_record(),
        flops=flops or {"convention": "paper", "train": run.plan.train_flops, "budget": None},
        progress={
            "step": run.plan.steps,
            "tokens": run.plan.tokens,
            "planned_steps": run.plan.steps,
            "planned_tokens": run.plan.tokens,
        },
        validation=[entry],
        data=None,
    ).write(run.directory)


TOKENS = {"1e4": [8, 16, 32], "4e4": [8, 16, 32], "1.6e5": [8, 16, 32]}


@pytest.fixture
def start(write_grid, tmp_path):
    """Plans a grid of 9 sizes and enters it into tmp_path/sweep."""

    def enter(**changes):
        path = write_grid(**{"tokens": TOKENS} | changes)
        runs = plan_sweep(read_grid(path))
        register(path, runs, out=tmp_path / "sweep")
        return runs

    return enter


def test_every_status_is_counted(start, tmp_path, capsys):
    """One run of each kind, the rest planned; FLOPs spent are those of the records."""
    sweep = start()
    _finish(sweep[0])
    _finish(sweep[1], status="diverged")
    _finish(sweep[2], status="stopped")
    record_failure(sweep[3].directory, "out of memory")
    lock = take_lock(sweep[4].directory)
    assert main(["sweep", "status", str(tmp_path / "sweep"), "--json", "-"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [run["status"] for run in content["runs"]] == [
        *("complete", "diverged", "stopped", "failed", "running"),
        *["planned"] * 13,
    ]
    assert content["runs"][3]["error"] == "out of memory"
    assert content["spent_flops"] == sum(run.plan.train_flops for run in sweep[:3])
    assert content["total_flops"] == sum(run.plan.train_flops for run in sweep)
    assert content["expected"]["phi_stderr"] > 0
    assert main(["sweep", "status", str(tmp_path / "sweep")]) == 0
    lock.close()
    lines = capsys.readouterr().out.splitlines()
    header, *cells = (line.split() for line in lines)
    assert header[3:9] == ["planned", "running", "complete", "stopped", "failed", "diverged"]
    assert cells[0][:9] == ["baseline", "1e+04", "1", "-", "1", "1", "1", "-", "-"]
    assert cells[1][:9] == ["baseline", "1e+04", "2", "1", "-", "-", "-", "1", "1"]
    assert cells[6][:7] == ["all", "13", "1", "1", "1", "1", "1"]
    assert "not yet from 1 complete run:" in "\n".join(lines)
    assert f"failed: {sweep[3].name}: out of memory" in lines


def test_what_phi_could_already_say(start, tmp_path, capsys):
    """All runs on the law but for noise: phi comes out within three standard errors."""
    sweep = start(effective_depth=6, recurrences=[1, 2, 4])
    rng = np.random.default_rng(0)
    for run in sweep:
        _finish(run, noise=float(rng.normal(0, 1e-3)))
    assert main(["sweep", "status", str(tmp_path / "sweep"), "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)["so_far"]["baseline"]
    assert found["runs"] == 27
    assert found["phi"] == pytest.approx(PUBLISHED.law.phi, abs=3 * found["stderr"])

    options = ["--json=-", "--estimator=least_squares", "--fix=phi=1"]
    assert main(["sweep", "status", str(tmp_path / "sweep"), *options]) == 0
    assert json.loads(capsys.readouterr().out)["so_far"]["baseline"]["phi"] == 1.0


def test_why_phi_refuses(start, tmp_path, capsys):
    """Not "no complete runs" where there are some; and the expectation is called a guess."""
    sweep = start()
    assert main(["sweep", "status", str(tmp_path / "sweep")]) == 0
    out = capsys.readouterr().out
    assert "phi so far: no complete runs" in out
    assert "the expected error is a guess" in out
    _finish(sweep[0])
    _finish(sweep[1], flops={"convention": "causal", "train": 1, "budget": None})
    assert main(["sweep", "status", str(tmp_path / "sweep")]) == 0
    assert (
        "phi so far: looped phi refuses: runs of different FLOP convention"
        in capsys.readouterr().out
    )
    assert main(["sweep", "status", str(tmp_path / "sweep"), "--json=-"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["so_far"] == {}
    assert content["why_none_so_far"].startswith("looped phi refuses: runs of different FLOP")


def test_what_is_held_counts_in_the_expectation(start, tmp_path, capsys):
    """A fit that holds E has one parameter less to trade phi against."""
    start(tokens={"1e4": [8, 16], "4e4": [8], "1.6e5": [8]}, recurrences=[1, 2])
    said = []
    for fix in ([], ["--fix", "E=1"]):
        assert main(["sweep", "status", str(tmp_path / "sweep"), *fix]) == 0
        said.append(capsys.readouterr().out)
    expected = [
        float(re.search(r"standard error of phi, baseline: (\S+)", text)[1]) for text in said
    ]
    assert expected[1] < expected[0]


def test_elsewhere_there_is_no_sweep(tmp_path, capsys):
    assert main(["sweep", "status", str(tmp_path)]) == 2
    assert "no sweep in" in capsys.readouterr().err
