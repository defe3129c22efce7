"""The last words of a run are those of its record."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from looped.run_summary import run_summary
from tests.test_record import a_record

FLOPS = {"convention": "paper", "per_token": 3, "train": 148_000_000_000}
PROGRESS = {"step": 10, "tokens": 5120, "planned_steps": 20, "planned_tokens": 10_240}
MODEL = {"width": 32, "recurrences": 4}


def lines(run_dir: Path, record, *, trainer=None) -> list[str]:
    run_dir.mkdir(parents=True, exist_ok=True)
    record.write(run_dir)
    (run_dir / "config.yaml").write_text(yaml.safe_dump({"trainer": trainer or {}}))
    return run_summary(run_dir).splitlines()


@pytest.fixture
def record():
    return a_record(model=MODEL, flops=FLOPS, progress=PROGRESS, wall_s=150.0)


def test_a_complete_run_alone(tmp_path, record):
    """Loss, what it cost, and a measurement that needs no other run."""
    run_dir = tmp_path / "runs" / "one"
    loss, spent, where = lines(run_dir, record)
    assert loss == "loss 3.2500 nats per token, on 999 validation tokens"
    assert (
        spent == "spent 1.48e+11 FLOPs on 5.12k tokens in 2.5 min: 50% of the plan, step 10 of 20"
    )
    assert where == (
        f"in {run_dir}; next: looped validate --config={run_dir}/config.yaml --ckpt_path=last "
        "--model.eval_recurrences=8"
    )


def test_a_complete_run_among_others(tmp_path, record):
    """Several runs have a phi."""
    lines(tmp_path / "runs" / "other", record)
    assert lines(tmp_path / "runs" / "one", record)[2].endswith(f": looped phi {tmp_path / 'runs'}")


def test_bytes_and_an_older_measurement_are_named(tmp_path, record):
    entry = replace(record.validation[0], step=8, bits_per_byte=1.25)
    record = replace(record, validation=[entry], status="stopped")
    assert lines(tmp_path / "one", record)[0] == (
        "loss 3.2500 nats per token, 1.2500 bits per byte, on 999 validation tokens, "
        "measured at step 8"
    )


def test_a_stopped_run_goes_on_without_the_limit_that_ended_it(tmp_path, record):
    """Resumed under the same limit it would end at once."""
    stopped = replace(record, status="stopped", validation=[])
    loss, _, where = lines(tmp_path, stopped, trainer={"max_steps": 10, "max_time": "00:00:01:00"})
    assert loss == "loss not measured: the run ended before a validation"
    assert where.endswith(" --ckpt_path=last --trainer.max_steps=-1 --trainer.max_time=null")
    assert lines(tmp_path, stopped, trainer={"max_steps": -1})[2].endswith(" --ckpt_path=last")


@pytest.mark.parametrize(
    ("step", "words"),
    [(12, "the training loss diverged at step 12"), (None, "the final loss is no finite number")],
)
def test_a_diverged_run(tmp_path, record, step, words):
    """What was measured before is no result."""
    record = replace(record, status="diverged", progress=PROGRESS | {"diverged_step": step})
    loss, _, where = lines(tmp_path, record)
    assert loss == f"{words}; loss 3.2500 before"
    assert "next, with a lower learning rate: looped fit" in where


def test_the_newest_configuration_is_named(tmp_path, record):
    """A resumed start may have set things otherwise than the first."""
    run_dir = tmp_path / "runs" / "one"
    lines(run_dir, record)
    newest = run_dir / "config-step=00000010.yaml"
    newest.write_text("trainer: {}\n")
    os.utime(newest, (2e9, 2e9))
    assert "config-step=00000010.yaml" in run_summary(run_dir)
