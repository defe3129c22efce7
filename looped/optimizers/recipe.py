"""From a network and its learning rates to one optimizer with named groups."""

import importlib
from typing import Any

import torch
from torch import nn

from looped.errors import UserError
from looped.modules.looped_transformer import LoopedTransformer
from looped.optimizers.learning_rates import LearningRates
from looped.optimizers.muonh import MuonH

OWN_RULES = ("muonh", "adamw")


def make_optimizer(
    network: LoopedTransformer, rates: LearningRates, *, arguments: dict[str, Any] | None = None
) -> torch.optim.Optimizer:
    """One optimizer over every trainable parameter of the network.

    Args:
        network: the model.
        rates: learning rates of this very run (after `LearningRates.transferred`), and the name
            of the optimizer: muonh or adamw, which are ours, or a class path.
        arguments: of the class, when it is named by a class path.

    Returns:
        An optimizer whose groups carry a `name`: matrices, embed, head, norms, streams. Groups
        without parameters are left out.

    Raises:
        UserError: no such class, or arguments that it does not take.
    """
    lr = {
        "matrices": rates.matrix_lr,
        "embed": rates.embed_lr,
        "head": rates.head_lr,
        "norms": rates.norm_lr,
        "streams": rates.stream_lr,
    }
    groups: list[dict[str, Any]] = [
        {"name": name, "params": parameters, "lr": lr[name]}
        for name, parameters in _members(network).items()
        if parameters
    ]
    if rates.optimizer not in OWN_RULES:
        return _by_class_path(rates.optimizer, groups, arguments or {})
    if arguments:
        raise UserError(
            f"model.optimizer_args is for optimizers named by a class path, not {rates.optimizer}"
        )
    for group in groups:
        group["rule"] = rates.optimizer if group["name"] == "matrices" else "adamw"
    return MuonH(groups)


def group_table(optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    """What trains how: name, rule, number of parameters and full learning rate of every group."""
    return [
        {
            "group": group.get("name", str(number)),
            "rule": group.get("rule", type(optimizer).__name__),
            "parameters": sum(p.numel() for p in group["params"]),
            "lr": float(group.get("initial_lr", group["lr"])),
        }
        for number, group in enumerate(optimizer.param_groups)
    ]


def _members(network: LoopedTransformer) -> dict[str, list[nn.Parameter]]:
    members: dict[str, list[nn.Parameter]] = {
        name: [] for name in ("matrices", "embed", "head", "norms", "streams")
    }
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            members[_group_of(name, parameter)].append(parameter)
    return members


def _group_of(name: str, parameter: nn.Parameter) -> str:
    part = name.split(".", 1)[0]
    if part in ("embed", "head"):
        return part
    if part == "injection" and name != "injection.weight":
        return "streams"
    return "matrices" if parameter.ndim == 2 else "norms"


def _by_class_path(
    path: str, groups: list[dict[str, Any]], arguments: dict[str, Any]
) -> torch.optim.Optimizer:
    module, _, name = path.rpartition(".")
    try:
        kind = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        kind = None
    if not (isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer)):
        raise UserError(
            f"model.optimizer {path!r} is no optimizer: choose {', '.join(OWN_RULES)} or a class "
            "path such as torch.optim.SGD"
        )
    try:
        return kind(groups, **arguments)
    except (TypeError, ValueError) as error:
        raise UserError(f"model.optimizer_args of {path}: {error}") from error
