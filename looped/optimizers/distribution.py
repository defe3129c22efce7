"""Several processes and one update: who works on which matrix, and sharded matrices made whole.

Every matrix is worked on by exactly one process and the result gathered, so that all processes
hold the same bits and none repeats what another has done. The polar factor of a matrix needs all
of it: a shard of it (FSDP2 keeps a share of the rows on each process) has another one.
"""

from collections.abc import Callable

import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor, distribute_tensor


def process_count() -> int:
    """How many processes train together."""
    return dist.get_world_size() if dist.is_initialized() else 1


def whole(tensor: Tensor) -> Tensor:
    """The tensor with all its rows on every process.

    Collective when the tensor is sharded; the very same tensor otherwise.
    """
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def sharded_like(tensor: Tensor, like: Tensor) -> Tensor:
    """The reverse of `whole`: of a tensor that is the same on every process, the rows it keeps.

    Args:
        tensor: all rows.
        like: a tensor of the same shape that may be sharded.
    """
    if not isinstance(like, DTensor):
        return tensor
    # without a source rank nothing is sent: every process cuts its own copy
    return distribute_tensor(tensor, like.device_mesh, like.placements, src_data_rank=None)


def divide_among_processes(work: Callable[[Tensor], Tensor], stack: Tensor) -> Tensor:
    """Do some work on every matrix of a stack, each process on its share; one gather.

    Args:
        work: takes and returns matrices, (S, rows, columns) each, none depending on another.
        stack: (S, rows, columns), the same on every process.

    Returns:
        `work(stack)`, with the same bits on every process.
    """
    processes = process_count()
    if processes == 1:
        return work(stack)
    share = -(-len(stack) // processes)  # rounded up: the last processes may have less to do
    mine = stack[dist.get_rank() * share :][:share]
    done = stack.new_zeros(share, *stack.shape[1:])
    if len(mine):
        done[: len(mine)] = work(mine)
    gathered = stack.new_empty(processes, *done.shape)
    dist.all_gather(list(gathered), done)
    return gathered.flatten(0, 1)[: len(stack)]
