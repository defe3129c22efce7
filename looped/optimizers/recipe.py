"""From a network and its learning rates to one optimizer with named groups."""

from torch import nn

from looped.modules.looped_transformer import LoopedTransformer
from looped.optimizers.learning_rates import LearningRates
from looped.optimizers.muonh import MuonH


def make_optimizer(network: LoopedTransformer, rates: LearningRates) -> MuonH:
    """One optimizer over every trainable parameter of the network.

    Args:
        network: the model.
        rates: learning rates of this very run (after `LearningRates.transferred`).

    Returns:
        An optimizer whose groups carry a `name`: matrices, embed, head, norms, streams. Groups
        without parameters are left out.
    """
    members: dict[str, list[nn.Parameter]] = {
        name: [] for name in ("matrices", "embed", "head", "norms", "streams")
    }
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            members[_group_of(name, parameter)].append(parameter)
    lr = {
        "matrices": rates.matrix_lr,
        "embed": rates.embed_lr,
        "head": rates.head_lr,
        "norms": rates.norm_lr,
        "streams": rates.stream_lr,
    }
    return MuonH(
        [
            {
                "name": name,
                "params": parameters,
                "lr": lr[name],
                "rule": rates.optimizer if name == "matrices" else "adamw",
            }
            for name, parameters in members.items()
            if parameters
        ]
    )


def _group_of(name: str, parameter: nn.Parameter) -> str:
    part = name.split(".", 1)[0]
    if part in ("embed", "head"):
        return part
    if part == "injection" and name != "injection.weight":
        return "streams"
    return "matrices" if parameter.ndim == 2 else "norms"
