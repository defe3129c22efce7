"""A run ends with three lines, and what they say to type next works."""

import shlex

import pytest

from looped.cli import main
from looped.record import read_run_file
from looped.training import TrainingProgress
from tests.training.conftest import fit


def last_lines(capsys) -> list[str]:
    return capsys.readouterr().out.splitlines()[-3:]


def type_next(line: str) -> int:
    return main(shlex.split(line.split(": ", 1)[1])[1:])


def test_complete_then_evaluated(config, tmp_path, capsys):
    assert fit(config) == 0
    loss, spent, where = last_lines(capsys)
    record = read_run_file(tmp_path / "run" / "run.json")
    assert loss.startswith(f"loss {record.validation[-1].loss:.4f} nats per token")
    assert spent.startswith(f"spent {record.flops['train']:.3g} FLOPs on 1.28k tokens in ")
    assert where.startswith(f"in {tmp_path / 'run'}; ")
    assert type_next(where) == 0


def test_stopped_then_resumed(config, tmp_path, capsys):
    """The line takes the limit out, so that the run comes to its end."""
    assert fit(config, "--trainer.max_steps=7") == 0
    _, spent, where = last_lines(capsys)
    assert "step 7 of 20" in spent
    assert type_next(where) == 0
    assert read_run_file(tmp_path / "run" / "run.json").status == "complete"
    assert "100% of the plan" in last_lines(capsys)[1]


def test_diverged(config, tmp_path, capsys):
    spoiled = tmp_path / "spoiled.yaml"
    spoiled.write_text("trainer: {callbacks: [{class_path: tests.training.conftest.Spoil}]}\n")
    assert fit(config, f"--config={spoiled}") == 1
    assert last_lines(capsys)[0].startswith("the training loss diverged at step ")


@pytest.mark.parametrize(
    ("argument", "bars"),
    [
        ("--trainer.enable_progress_bar=true", ["TrainingProgress"]),
        ("--trainer.enable_progress_bar=false", []),
        ("--trainer.callbacks=lightning.pytorch.callbacks.TQDMProgressBar", ["TQDMProgressBar"]),
    ],
)
def test_one_progress_bar(config, monkeypatch, argument, bars):
    """Ours, unless the user wants none or another."""
    seen = []

    def remember(_compute, trainer, _module):
        seen.extend(c for c in trainer.callbacks if "Progress" in type(c).__name__)

    monkeypatch.setattr("looped.callbacks.compute.Compute.on_train_end", remember)
    config.write_text(config.read_text().replace("  enable_progress_bar: false\n", ""))
    assert fit(config, argument, "--horizon.steps=1") == 0
    assert [type(bar).__name__ for bar in seen] == bars
    assert all(not isinstance(bar, TrainingProgress) or not bar._on_terminal for bar in seen)
