"""The example of docs/own-model.md gets its records, which stand beside all others."""

import json
import re
from pathlib import Path

import pytest
import torch
from lightning.pytorch import LightningModule

from looped.cli import main
from looped.datamodules.prepare import prepare
from looped.errors import UserError
from looped.measured_model import MEMBERS, check_groups, measured_model
from looped.modules.looped_lm import LoopedLM
from looped.record import read_run_file
from tests.callbacks.conftest import MODEL, MadeUpTokens, Run

ROOT = Path(__file__).parents[1]
VOCAB, WIDTH = 300, 16
(EXAMPLE,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "own-model.md").read_text(), re.S)
DEFINITIONS, LOOP = EXAMPLE.split("\n\n\nfor tokens in", 1)


@pytest.fixture(scope="module")
def example() -> dict:
    """The names that the page defines, for the tiny vocabulary."""
    names: dict = {"__name__": "rnn"}
    exec(DEFINITIONS.replace("vocab_size=512", f"vocab_size={VOCAB}"), names)
    return names


@pytest.fixture
def run(tmp_path) -> Run:
    return Run(tmp_path / "run")


@pytest.mark.slow
def test_the_example_of_the_page(tmp_path, corpus, monkeypatch, capsys, example):
    """Trained as the page does; the counts are those of a GRU by hand, and phi reads the runs."""
    monkeypatch.chdir(tmp_path)
    prepare(
        source="text",
        paths=[f"{corpus}/*.txt"],
        out="data/demo",
        seq_len=128,
        tokenizer=f"bpe:{VOCAB}",
        val_fraction=0.3,
    )
    for recurrences in (1, 4):
        example["train"](WIDTH, recurrences, 2048)
    record = read_run_file(tmp_path / "runs/rnn/r4-d16-D2e+03/run.json")
    gru = 3 * (2 * WIDTH * WIDTH + 2 * WIDTH)
    enter = WIDTH * WIDTH + WIDTH
    assert record.status == "complete"
    assert (record.params["n_rec"], record.params["n_once"]) == (gru, enter + 2 * WIDTH)
    assert record.progress["tokens"] == 2048
    assert record.flops["train"] == 2048 * 6 * (enter + WIDTH * VOCAB + 4 * gru)
    assert record.flops["measured_per_token"] is None
    assert record.model["recurrences"] == 4
    assert 0 < record.validation[-1].loss < 7

    published = str(ROOT / "tests" / "data" / "isodepth_runs.csv")
    capsys.readouterr()
    assert main(["phi", "runs/rnn", published, "--recipe", "rnn", "--json", "-"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["recipes"]["rnn"]["n_runs"] == 2
    assert answer["recipes"]["rnn"]["phi"]["value"] is None  # two runs cannot carry it
    assert answer["excluded"] == []


def test_the_loop_of_the_page_only_calls_what_was_tested():
    assert re.findall(r"train\(.*\)", LOOP) == ["train(width, recurrences, tokens)"]


def test_our_own_model_is_one():
    model = LoopedLM(**MODEL)
    check_groups(model)
    measured = measured_model(model)
    assert measured.describe()["recurrences"] == measured.recurrences == MODEL["recurrences"]
    assert measured.flops_per_token() == model.architecture.flops_per_token()


def test_what_a_model_does_not_tell_is_named():
    with pytest.raises(UserError, match=f"LightningModule lacks {', '.join(MEMBERS)}"):
        measured_model(LightningModule())


def test_groups_that_leave_parameters_out_are_refused(run, example):
    """Forgetting a layer would move phi."""
    model = example["LoopedRNN"](16, 2, vocab_size=20, seq_len=8)
    model.forgotten = torch.nn.Linear(3, 3, bias=False)
    run.prepare(steps=2)
    with pytest.raises(UserError, match=r"add up to 2,\d+, but it has 2,\d+ parameters"):
        run.trainer.fit(model, MadeUpTokens())


def test_a_validation_that_returns_a_mean_is_refused(run, example):
    """Means of means are no loss: the sum over all targets is needed."""
    model = example["LoopedRNN"](16, 2, vocab_size=20, seq_len=8)
    model.validation_step = lambda batch, batch_idx: model.nats(batch).mean()
    run.prepare(steps=2)
    with pytest.raises(UserError, match="must return a dict of `nats`"):
        run.trainer.fit(model, MadeUpTokens())


def test_a_foreign_run_resumes(run, example):
    """Counters go on, and the plan is that of the first start."""
    build = example["LoopedRNN"]
    run.prepare(steps=6, max_steps=4)
    run.trainer.fit(build(16, 2, vocab_size=20, seq_len=8), run.data)
    assert run.record.status == "stopped"
    run.prepare(steps=6)
    run.trainer.fit(build(16, 2, vocab_size=20, seq_len=8), run.data, ckpt_path=run.last)
    assert run.record.status == "complete"
    assert run.compute.tokens == 6 * 2 * 8
