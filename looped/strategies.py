"""How several processes train one model: which of Lightning's strategies, and FSDP2 in particular.

`ddp` keeps the whole model on every process. `FullyShardedStrategy` keeps a share of parameters,
gradients and optimizer state on each; a run is the same under both, and may change over from one
to the other at any checkpoint.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.strategies import (
    DDPStrategy,
    ModelParallelStrategy,
    SingleDeviceStrategy,
    Strategy,
)
from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from torch.optim import Optimizer
from typing_extensions import override

from looped.errors import UserError
from looped.optimizers.distribution import sharded_like


class FullyShardedStrategy(ModelParallelStrategy):
    """FSDP2 over all processes of all nodes.

    Lightning's ModelParallelStrategy, with three differences:

    - It shards over all processes. The other wants their number in advance, and by default cuts
      matrices in pieces between the processes of a node (tensor parallelism).
    - Checkpoints are single files like those of `ddp`: written beside, read back, renamed, found
      by the fitter, and read by one process. A directory of shards is none of that.
    - Loading matches optimizer states to parameters by their place in the groups, as torch does.
      The other counts through the model instead and so gives the states of a `ddp` checkpoint to
      the wrong parameters; and it takes an optimizer step to make room for them, which moves
      weights that are loaded already.

    Args:
        process_group_backend: nccl or gloo; null = what suits the accelerator.
    """

    def __init__(self, process_group_backend: str | None = None) -> None:
        super().__init__(
            tensor_parallel_size=1,
            save_distributed_checkpoint=False,
            process_group_backend=process_group_backend,
        )

    @override
    def setup_environment(self) -> None:
        self._data_parallel_size = self.num_nodes * self.num_processes
        super().setup_environment()

    @property
    @override
    def lightning_restore_optimizer(self) -> bool:
        return True

    @override
    def load_checkpoint(
        self, checkpoint_path: str | Path, weights_only: bool | None = None
    ) -> dict[str, Any]:
        path = Path(self.broadcast(checkpoint_path))
        # mapped, not read: of each tensor a process touches the rows that it keeps
        checkpoint: dict[str, Any] = torch.load(
            path, mmap=True, map_location="cpu", weights_only=weights_only is not False
        )
        assert self.model is not None
        options = StateDictOptions(full_state_dict=True)
        set_model_state_dict(self.model, checkpoint.pop("state_dict"), options=options)
        return checkpoint

    @override
    def load_optimizer_state_dict(self, checkpoint: Mapping[str, Any]) -> None:
        states = checkpoint["optimizer_states"]
        for optimizer, state in zip(self.optimizers, states, strict=True):
            optimizer.load_state_dict(_sharded(state, optimizer))


def _sharded(saved: dict[str, Any], optimizer: Optimizer) -> dict[str, Any]:
    """An optimizer's saved state with every tensor shaped like its parameter cut like it."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    keys = [key for group in saved["param_groups"] for key in group["params"]]
    state = {
        key: {
            name: sharded_like(value, p) if getattr(value, "shape", None) == p.shape else value
            for name, value in saved["state"][key].items()
        }
        for key, p in zip(keys, parameters, strict=True)
    }
    return saved | {"state": state}


def check_strategy(strategy: Strategy) -> None:
    """Refuse what would not train as planned, before any process waits for another.

    Raises:
        UserError: neither one process, nor `ddp`, nor `FullyShardedStrategy`: FSDP1 and DeepSpeed
            hand the optimizer flat pieces of parameters, of which no polar factor can be taken.
            Or torchrun or SLURM have started another number of processes.
    """
    if isinstance(strategy, SingleDeviceStrategy):
        return
    if not isinstance(strategy, DDPStrategy | FullyShardedStrategy):
        raise UserError(
            f"trainer.strategy {type(strategy).__name__} is not supported: use "
            "configs/strategies/ddp.yaml, or configs/strategies/fsdp2.yaml to shard the model"
        )
    assert strategy.cluster_environment is not None
    try:
        strategy.cluster_environment.validate_settings(
            num_devices=strategy.num_processes, num_nodes=strategy.num_nodes
        )
    except ValueError as error:
        raise UserError(f"trainer: {' '.join(str(error).split())}") from error
