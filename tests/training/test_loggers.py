"""Where the training curve goes: metrics.csv, TensorBoard, and what the user names."""

import csv
import time
from pathlib import Path

import pytest
from lightning.pytorch.loggers.logger import DummyLogger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.training.conftest import fit

ROOT = Path(__file__).parents[2]
LOGGED_STEPS = 4  # of 20, every fifth


class Seen(DummyLogger):
    """Keeps what it is told."""

    logged: list[tuple[int, dict]] = []  # noqa: RUF012  (shared on purpose)

    def log_metrics(self, metrics, step=None) -> None:
        self.logged.append((step, metrics))


def curve(path) -> dict[int, float]:
    rows = csv.DictReader(path.open())
    return {int(row["step"]): float(row["train_loss"]) for row in rows if row["train_loss"]}


def events(run_dir) -> list[tuple[int, float]]:
    accumulator = EventAccumulator(str(run_dir), size_guidance={"scalars": 0})
    accumulator.Reload()
    return [(event.step, event.value) for event in accumulator.Scalars("train_loss")]


def test_both_curves_are_the_same(config, tmp_path):
    assert fit(config) == 0
    in_csv = curve(tmp_path / "run" / "metrics.csv")
    assert len(in_csv) == LOGGED_STEPS
    assert dict(events(tmp_path / "run")) == pytest.approx(in_csv)


def test_steps_taken_twice_are_shown_once(config, tmp_path):
    """Killed after step 18 and resumed at 7: what was logged in between is purged."""
    every = ("--trainer.log_every_n_steps=1", "--checkpoints.keep=2")
    assert fit(config, *every, "--trainer.max_steps=18") == 0
    run = tmp_path / "run"
    assert fit(config, *every, f"--ckpt_path={run / 'checkpoints' / 'step=00000014.ckpt'}") == 0
    steps = [step for step, _ in events(run)]
    assert steps == sorted(set(steps)) == list(range(20))


def test_a_logger_of_the_users_comes_beside_the_csv(config, tmp_path):
    """The other commands read metrics.csv; TensorBoard makes way."""
    Seen.logged.clear()
    assert fit(config, "--trainer.logger=tests.training.test_loggers.Seen") == 0
    run = tmp_path / "run"
    seen = {step: logged["train_loss"] for step, logged in Seen.logged if "train_loss" in logged}
    assert seen == pytest.approx(curve(run / "metrics.csv"))
    assert not list(run.glob("events*"))


def test_no_logger_when_none_is_wanted(config, tmp_path):
    assert fit(config, "--trainer.logger=false") == 0
    assert not list((tmp_path / "run").glob("metrics*"))
    assert not list((tmp_path / "run").glob("events*"))


@pytest.mark.slow
def test_wandb_by_one_configuration(config, tmp_path, monkeypatch):
    """Offline, the whole curve lies in a file of its own, which a process of its own writes."""
    wandb = pytest.importorskip("wandb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    assert fit(config, f"--config={ROOT / 'configs' / 'loggers' / 'wandb.yaml'}") == 0
    wandb.finish()
    (log,) = tmp_path.glob("runs/wandb/offline-run-*/*.wandb")
    deadline = time.monotonic() + 60
    while log.read_bytes().count(b"train_loss") < LOGGED_STEPS:
        assert time.monotonic() < deadline, "the curve is not in the file"
        time.sleep(0.1)
    assert (tmp_path / "run" / "metrics.csv").exists()


def test_a_logger_that_is_not_installed_is_one_line(config, tmp_path, capsys):
    assert fit(config, "--trainer.logger=lightning.pytorch.loggers.CometLogger") == 2
    error = capsys.readouterr().err
    assert "comet-ml" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()
