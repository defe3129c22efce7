"""A run of 20 steps on the tiny corpus, started as from the command line."""

import subprocess
import time
from pathlib import Path

import pytest
import torch
import yaml
from lightning.pytorch import Callback

from looped.cli import main
from tests.conftest import SEQ_LEN

VOCAB = 300


class Sleep(Callback):
    """Makes each batch take a twentieth of a second."""

    def on_train_batch_end(self, *_) -> None:
        time.sleep(0.05)


class Spoil(Callback):
    """Makes the loss NaN from the fourth step on."""

    def on_train_batch_end(self, trainer, pl_module, *_) -> None:
        if trainer.global_step == 3:
            torch.nn.init.constant_(pl_module.network.norm_final.weight, float("nan"))


@pytest.fixture
def config(tmp_path, prepared) -> Path:
    """A complete configuration of a run of 20 steps in tmp_path / run."""
    content = {
        "run": {"dir": str(tmp_path / "run")},
        "horizon": {"steps": 20},
        "model": {
            "width": 16,
            "num_heads": 2,
            "prelude_layers": 1,
            "recurrent_layers": 1,
            "coda_layers": 1,
            "recurrences": 3,
            "vocab_size": VOCAB,
            "seq_len": SEQ_LEN,
        },
        "data": {"data_dir": str(prepared), "batch_size": 4},
        "trainer": {"accelerator": "cpu", "enable_progress_bar": False, "log_every_n_steps": 5},
        "checkpoints": {"every_n_steps": 7},
    }
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def fit(config: Path, *arguments: str) -> int:
    return main(["fit", f"--config={config}", *arguments])


def tree(directory: Path) -> list[str]:
    return sorted(str(p.relative_to(directory)) for p in directory.rglob("*"))


def state(path: Path) -> dict:
    checkpoint = torch.load(path, weights_only=True)
    keep = ("state_dict", "optimizer_states", "lr_schedulers", "global_step")
    return {name: checkpoint[name] for name in keep}


def assert_equal(a, b) -> None:
    """Equal to the last bit, through nested containers."""
    if isinstance(a, torch.Tensor):
        assert torch.equal(a, b)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_equal(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_equal(x, y)
    else:
        assert a == b


def wait_for(path: Path, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, "the run ended before it could be interrupted"
        assert time.monotonic() < deadline
        time.sleep(0.02)
