"""What `looped fit` leaves behind, and what its siblings read of it."""

import csv
import json

import pytest
import torch

from looped import training
from looped.cli import main
from looped.record import read_checkpoint, read_run_file
from tests.conftest import SEQ_LEN
from tests.training.conftest import fit, tree


def test_a_run_leaves_what_the_design_says(config, tmp_path, prepared):
    """config.yaml, checkpoints with the record, run.json, metrics.csv; and nothing else of ours."""
    assert fit(config) == 0
    run = tmp_path / "run"
    assert {"config.yaml", "run.json", "metrics.csv", "checkpoints/last.ckpt"} <= set(tree(run))
    record = read_run_file(run / "run.json")
    assert record.status == "complete"
    assert record.progress["tokens"] == 20 * 4 * SEQ_LEN
    in_checkpoint = read_checkpoint(run / "checkpoints" / "last.ckpt")
    assert in_checkpoint.validation == record.validation
    assert record.data["fingerprint"] == json.loads((prepared / "data.json").read_text()).get(
        "fingerprint", record.data["fingerprint"]
    )
    assert torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)["global_step"] == 20


def test_the_saved_configuration_trains_the_same_run(config, tmp_path):
    """config.yaml alone reproduces the run bit for bit, every default written out."""
    assert fit(config) == 0
    saved = tmp_path / "run" / "config.yaml"
    assert fit(saved, f"--run.dir={tmp_path / 'again'}") == 0
    losses = [
        read_run_file(tmp_path / name / "run.json").validation[-1].loss for name in ("run", "again")
    ]
    assert losses[0] == losses[1]


def test_measuring_callbacks_survive_a_second_configuration(config, tmp_path):
    """A later --config that replaces the list of callbacks must not lose the measurement."""
    second = tmp_path / "second.yaml"
    second.write_text(
        "trainer: {callbacks: [{class_path: lightning.pytorch.callbacks.LearningRateMonitor}]}\n"
    )
    assert fit(config, f"--config={second}", "--horizon.steps=18") == 0
    record = read_run_file(tmp_path / "run" / "run.json")
    assert record.status == "complete"
    rows = list(csv.DictReader((tmp_path / "run" / "metrics.csv").open()))
    counted = [float(row["tokens"]) for row in rows if row["tokens"]]
    assert counted[-1] == record.progress["tokens"]  # the last row is not a copy of an earlier one
    assert "lr-MuonH/matrices" in (tmp_path / "run" / "metrics.csv").read_text()


def test_numbers_may_be_written_with_exponents(config, tmp_path):
    """1e3 in YAML is text to a YAML 1.1 reader; here it is a number."""
    text = config.read_text().replace("steps: 20", "tokens: 1e3")
    config.write_text(text)
    assert fit(config, "--horizon.tokens", "1.28e3") == 0
    assert read_run_file(tmp_path / "run" / "run.json").progress["tokens"] == 1280


def test_constructor_arguments_from_the_command_line(config, tmp_path):
    """Recurrences, truncation depth and streams reach the network."""
    arguments = ("--model.recurrences=4", "--model.truncation_depth=2", "--model.streams=2")
    assert fit(config, *arguments, "--horizon.steps=2") == 0
    model = read_run_file(tmp_path / "run" / "run.json").model
    assert (model["recurrences"], model["truncation_depth"], model["streams"]) == (4, 2, 2)


def test_validate_test_and_predict_read_a_checkpoint(config, tmp_path, capsys):
    """`validate` at the trained count repeats the recorded loss; at another it gives another."""
    config.write_text(
        config.read_text().replace("recurrences: 3", "recurrences: 3\n  injection: none")
    )
    assert fit(config) == 0
    capsys.readouterr()
    recorded = read_run_file(tmp_path / "run" / "run.json").validation[-1].loss
    for command in ("validate", "test", "predict"):
        assert main([command, f"--config={config}", "--ckpt_path=last"]) == 0
        out = capsys.readouterr().out
        if command != "predict":
            assert f"{recorded:.6f}"[:7] in out
    nats = torch.load(tmp_path / "run" / "token_losses.pt", weights_only=True)
    assert nats.shape[1] == SEQ_LEN
    assert nats.double().mean().item() == pytest.approx(recorded, rel=1e-6)
    before = (tmp_path / "run" / "run.json").read_bytes()
    more = ["--model.eval_recurrences=6"]
    assert main(["validate", f"--config={config}", "--ckpt_path=last", *more]) == 0
    assert f"{recorded:.6f}"[:7] not in capsys.readouterr().out
    assert (tmp_path / "run" / "run.json").read_bytes() == before


@pytest.mark.parametrize(
    ("accelerator", "gpu", "expected"),
    [("auto", True, "bf16-mixed"), ("cpu", True, "32-true"), ("auto", False, "32-true")],
)
def test_precision_follows_the_hardware(monkeypatch, accelerator, gpu, expected):
    """bfloat16 only where a GPU has it and is used."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: gpu)
    assert training._default_precision(accelerator) == expected


def test_a_diverged_run_has_its_own_exit_status(config, tmp_path, capsys):
    """A script must be able to tell a lost run from a good one."""
    spoiled = tmp_path / "spoiled.yaml"
    spoiled.write_text("trainer: {callbacks: [{class_path: tests.training.conftest.Spoil}]}\n")
    assert fit(config, f"--config={spoiled}") == 1
    assert read_run_file(tmp_path / "run" / "run.json").status == "diverged"
