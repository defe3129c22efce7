"""Run by conftest.py: everything that takes two processes, in one job, as starting one is slow.

Lightning starts the second process, with this very command, when the first Trainer fits.

Usage: python -m tests.several_processes.job DATA OUT
"""

import os
import sys
from pathlib import Path
from typing import Any

import torch
from torch.distributed.device_mesh import init_device_mesh

from looped.errors import UserError
from looped.modules.looped_transformer import LoopedTransformer
from looped.modules.sharding import shard
from looped.optimizers import muonh
from looped.optimizers.distribution import divide_among_processes
from tests.several_processes.ragged import measured_loss
from tests.several_processes.training import (
    KINDS,
    MODEL,
    STOPPED_AT,
    last_checkpoint,
    save,
    train,
    updates,
)


class CountMatrices:
    """Stands in for `orthogonalize` and notes how many matrices this process works on."""

    def __init__(self) -> None:
        self.matrices = 0
        self._original = muonh.orthogonalize
        muonh.orthogonalize = self

    def __call__(self, matrices: torch.Tensor) -> torch.Tensor:
        self.matrices += len(matrices)
        return self._original(matrices)


def divided(sizes: tuple[int, ...]) -> dict[int, torch.Tensor]:
    """Stacks of several sizes, also with fewer matrices than processes."""
    generator = torch.Generator().manual_seed(7)
    stacks = {size: torch.randn(size, 4, 6, generator=generator) for size in sizes}
    return {size: divide_among_processes(lambda x: 2 * x, stack) for size, stack in stacks.items()}


def refusal() -> str:
    network = LoopedTransformer(**{k: v for k, v in MODEL.items() if not k.endswith("_lr")})
    mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("data_parallel", "tensor_parallel"))
    try:
        shard(network, mesh)
    except UserError as error:
        return str(error)
    return "not refused"


def main() -> None:
    data_dir, out = sys.argv[1], Path(sys.argv[2])

    def two(name: str, **arguments: Any) -> None:
        result = train(out / name, data_dir, processes=2, **arguments)
        save(result, out, name, int(os.environ["LOCAL_RANK"]))

    counter = CountMatrices()
    two("full-muonh-ddp", strategy="ddp")
    rank = int(os.environ["LOCAL_RANK"])
    save(counter.matrices, out, "matrices", rank)
    for kind in KINDS:
        for optimizer in ("muonh", "adamw"):
            for strategy in ("ddp", "fsdp2"):
                name = f"{kind}-{optimizer}-{strategy}"
                if not last_checkpoint(out / name).exists():
                    two(name, kind=kind, optimizer=optimizer, strategy=strategy)
    more = {"accumulate_grad_batches": 2, "gradient_clip_val": 0.1}
    two("clipped-ddp", strategy="ddp", optimizer="adamw", **more)
    two("clipped-fsdp2", strategy="fsdp2", optimizer="adamw", **more)
    two("double-ddp", strategy="ddp", precision="64-true")
    two("own-seed-fsdp2", strategy="fsdp2", seed=rank)
    for before in ("ddp", "fsdp2"):
        two(f"stopped-{before}", strategy=before, max_steps=STOPPED_AT)
    for before, after in (("ddp", "fsdp2"), ("fsdp2", "ddp"), ("fsdp2", "fsdp2")):
        checkpoint = last_checkpoint(out / f"stopped-{before}")
        two(f"resumed-{before}-{after}", strategy=after, ckpt_path=checkpoint)
    save(measured_loss("ddp"), out, "ragged", rank)
    save(updates(), out, "updates", rank)
    save(divided((1, 2, 3)), out, "divided", rank)
    save(refusal(), out, "refusal", rank)


if __name__ == "__main__":
    main()
