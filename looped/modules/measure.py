"""FLOPs as torch itself counts them: the check on the formula of architecture.py.

Measured on the meta device, where nothing is computed: on a CPU torch's counter sees attention as
one opaque operation of zero FLOPs (pytorch/pytorch#195460).
"""

import torch
from torch.utils.flop_counter import FlopCounterMode

from looped.architecture import Architecture
from looped.modules.looped_transformer import LoopedTransformer


def measured_flops_per_token(architecture: Architecture) -> int:
    """Matrix-product and attention FLOPs of one training forward and backward, per token.

    Args:
        architecture: the model; one row of its seq_len tokens is counted.

    Returns:
        FLOPs per token, rounded down to a whole number. Element-wise work is not counted.
    """
    with torch.device("meta"):
        model = LoopedTransformer(**architecture.as_record())
        tokens = torch.zeros(1, architecture.seq_len, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        torch.autograd.backward(model.loss(tokens, tokens))
    total: int = counter.get_total_flops()
    return total // architecture.seq_len
