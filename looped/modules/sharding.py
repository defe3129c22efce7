"""Parameters, gradients and optimizer state shared out between processes (FSDP2).

Decisions:
- A unit is one block; embedding, head and norms belong to the root, which is the network itself.
- The recurrent blocks stay whole between two passes and are gathered once per forward, not r
  times: they are the part of the network that is used again, and a small one.
- Every process begins with the weights of the first, whatever its own seed.
"""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

from looped.errors import UserError
from looped.modules.looped_transformer import LoopedTransformer


def shard(network: LoopedTransformer, mesh: DeviceMesh) -> None:
    """Shard a network in place; one that is sharded already stays as it is.

    Args:
        network: the model, whole on every process.
        mesh: with the dimensions `data_parallel` and `tensor_parallel`, as Lightning's
            ModelParallelStrategy makes it.

    Raises:
        UserError: tensor parallelism is asked for.
    """
    if isinstance(network, FSDPModule):
        return
    if mesh["tensor_parallel"].size() > 1:
        raise UserError(
            f"tensor_parallel_size {mesh['tensor_parallel'].size()}: looped shards over the data "
            "only; set tensor_parallel_size 1 and data_parallel_size to the number of processes"
        )
    _broadcast(network, mesh.device_type)
    used_again = network.architecture.recurrences > network.architecture.recurrent_blocks
    for block in (*network.prelude, *network.coda):
        fully_shard(block, mesh=mesh["data_parallel"])
    for block in network.recurrent:
        fully_shard(block, mesh=mesh["data_parallel"], reshard_after_forward=not used_again)
    fully_shard(network, mesh=mesh["data_parallel"])
    for method in ("loss", "nats"):  # they gather and release what `forward` does
        register_fsdp_forward_method(network, method)


def _broadcast(network: LoopedTransformer, device_type: str) -> None:
    with torch.no_grad():
        for parameter in network.parameters():
            on_device = parameter.to(device_type)
            dist.broadcast(on_device, src=0)
            parameter.copy_(on_device)
