"""One short training run and everything that two runs can be compared by; used by both sides.

The rates are so high that the loss falls by nats in 20 steps and every part of the network has
its share in that: a gradient that is lost, or counted twice, shows.
"""

import os
import signal
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, Trainer, seed_everything

from looped.callbacks.checkpoints import Checkpoints
from looped.callbacks.compute import Compute
from looped.callbacks.divergence import Divergence
from looped.callbacks.horizon import Horizon
from looped.callbacks.run_record import RunRecord
from looped.callbacks.validation_loss import ValidationLoss
from looped.datamodules.token_data import TokenDataModule
from looped.modules.looped_lm import LoopedLM
from looped.optimizers.distribution import whole
from looped.optimizers.muonh import MuonH
from looped.strategies import FullyShardedStrategy
from tests.conftest import SEQ_LEN
from tests.optimizers.test_muonh import matrices, set_gradients

ROWS_PER_STEP = 12
STEPS = 20
STOPPED_AT = 9

MODEL = {
    "width": 16,
    "num_heads": 2,
    "prelude_layers": 1,
    "recurrent_layers": 1,
    "coda_layers": 1,
    "recurrences": 4,
    "vocab_size": 300,
    "seq_len": SEQ_LEN,
    "matrix_lr": 0.05,
    "embed_lr": 5.0,
    "head_lr": 1.0,
}
# Not the linear injection, which begins as [I | 0] and for some steps ignores all passes but one.
KINDS: dict[str, dict[str, Any]] = {
    "full": {"injection": "additive"},
    "truncated": {"injection": "additive", "truncation_depth": 2},
    "streams": {"streams": 2},
    "checkpointed": {
        "injection": "additive",
        "truncation_depth": 3,
        "activation_checkpointing": True,
    },
}


class Curve(Callback):
    """The training loss of every batch, the mean over the processes.

    When batches are accumulated, Lightning hands out their share of the step's loss.
    """

    def __init__(self) -> None:
        self.losses: list[float] = []

    def on_train_batch_end(self, trainer, pl_module, outputs, *_: Any) -> None:
        loss = outputs["loss"].detach().clone()
        self.losses.append(trainer.strategy.reduce(loss, reduce_op="mean").item())


class SignalAt(Callback):
    """Sends SIGUSR1 to one process of the job after a number of steps."""

    def __init__(self, step: int, rank: int) -> None:
        self.step = step
        self.rank = rank

    def on_train_batch_end(self, trainer, *_: Any) -> None:
        if (trainer.global_step, trainer.global_rank) == (self.step, self.rank):
            os.kill(os.getpid(), signal.SIGUSR1)


def train(
    out: Path,
    data_dir: str,
    *,
    processes: int,
    strategy: str = "auto",
    kind: str = "full",
    optimizer: str = "muonh",
    seed: int = 0,
    ckpt_path: Path | None = None,
    **trainer_arguments: Any,
) -> dict[str, Any]:
    """Train for STEPS steps of ROWS_PER_STEP rows, however many processes share them."""
    seed_everything(seed, verbose=False)
    model = LoopedLM(**(MODEL | KINDS[kind]), optimizer=optimizer)
    accumulate = trainer_arguments.get("accumulate_grad_batches", 1)
    data = TokenDataModule(data_dir, batch_size=ROWS_PER_STEP // processes // accumulate)
    curve, compute, validation = Curve(), Compute(), ValidationLoss()
    trainer = Trainer(
        accelerator="cpu",
        devices=processes,
        strategy=FullyShardedStrategy() if strategy == "fsdp2" else strategy,
        max_epochs=-1,
        default_root_dir=out,
        logger=False,
        num_sanity_val_steps=0,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[
            curve,
            compute,
            validation,
            Horizon(steps=STEPS),
            RunRecord(str(out)),
            Divergence(),
            Checkpoints(),
        ],
        **trainer_arguments,
    )
    trainer.fit(model, data, ckpt_path=ckpt_path)
    return {
        "losses": curve.losses,
        "weights": {
            name: whole(p.detach()).clone() for name, p in model.network.named_parameters()
        },
        "counters": (compute.tokens, compute.train_flops, compute.optimizer_flops),
        "validation": [asdict(entry) for entry in validation.entries],
        "val_rows": data.val_rows,
    }


def updates() -> list[torch.Tensor]:
    """Matrices after ten steps of MuonH with the same gradients on every process."""
    parameters = matrices()
    optimizer = MuonH([{"params": parameters, "rule": "muonh", "lr": 0.03}])
    for step in range(10):
        set_gradients(parameters, step)
        optimizer.step()
    return [p.detach() for p in parameters]


def last_checkpoint(out: Path) -> Path:
    return out / "checkpoints" / "last.ckpt"


def save(result: Any, out: Path, name: str, rank: int) -> None:
    torch.save(result, out / f"{name}.{rank}.pt")


def load(out: Path, name: str, rank: int = 0) -> Any:
    return torch.load(out / f"{name}.{rank}.pt", weights_only=True)
