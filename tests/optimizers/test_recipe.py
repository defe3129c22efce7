"""Every trainable parameter lands in exactly one group, the right one."""

import pytest
import torch

from looped.errors import UserError
from looped.modules.looped_transformer import LoopedTransformer
from looped.optimizers.learning_rates import LearningRates
from looped.optimizers.recipe import group_table, make_optimizer

RATES = LearningRates(matrix_lr=1, embed_lr=2, head_lr=3, norm_lr=4, stream_lr=5)


@pytest.mark.parametrize("arguments", [{}, {"streams": 2}, {"recurrences": 1}], ids=str)
def test_groups_partition_the_parameters(arguments):
    network = LoopedTransformer(width=16, num_heads=2, vocab_size=64, **arguments)
    optimizer = make_optimizer(network, RATES)
    names = {id(p): name for name, p in network.named_parameters()}
    groups = {g["name"]: [names[id(p)] for p in g["params"]] for g in optimizer.param_groups}
    assert sorted(n for members in groups.values() for n in members) == sorted(names.values())
    assert groups["embed"] == ["embed.weight"]
    assert groups["head"] == ["head.weight"]
    assert all("norm" in n for n in groups["norms"])
    assert all(n.startswith("injection.") for n in groups.get("streams", []))
    assert ("streams" in groups) == ("streams" in arguments)
    assert ("injection.weight" in groups["matrices"]) == (arguments == {})
    expected = {"matrices": 1, "embed": 2, "head": 3, "norms": 4, "streams": 5}
    for group in optimizer.param_groups:
        assert group["lr"] == expected[group["name"]]


def test_frozen_parameters_are_left_out():
    network = LoopedTransformer(
        width=16, num_heads=2, vocab_size=64, recurrences=3, streams=2, truncation_depth=1
    )
    groups = {g["name"] for g in make_optimizer(network, RATES).param_groups}
    assert "embed" not in groups


def test_adamw_alone_by_name():
    network = LoopedTransformer(width=16, num_heads=2, vocab_size=64)
    groups = make_optimizer(network, LearningRates(optimizer="adamw")).param_groups
    assert {g["rule"] for g in groups} == {"adamw"}


def test_any_other_optimizer_by_its_class_path():
    """SGD with momentum, the groups and their rates kept."""
    network = LoopedTransformer(width=16, num_heads=2, vocab_size=64)
    rates = LearningRates(optimizer="torch.optim.SGD", matrix_lr=1, embed_lr=2)
    optimizer = make_optimizer(network, rates, arguments={"momentum": 0.5})
    assert isinstance(optimizer, torch.optim.SGD)
    assert [g["lr"] for g in optimizer.param_groups][:2] == [1, 2]
    assert optimizer.param_groups[0]["momentum"] == 0.5


@pytest.mark.parametrize(
    ("optimizer", "arguments", "words"),
    [
        ("sgd", {}, "'sgd' is no optimizer"),
        ("torch.optim.Nothing", {}, "is no optimizer"),
        ("torch.nn.Linear", {}, "is no optimizer"),
        ("torch.optim.SGD", {"speed": 3}, "speed"),
        ("torch.optim.SGD", {"momentum": -1}, "momentum"),
        ("adamw", {"eps": 1e-8}, "optimizer_args"),
    ],
)
def test_impossible_optimizers_are_named(optimizer, arguments, words):
    network = LoopedTransformer(width=16, num_heads=2, vocab_size=64)
    with pytest.raises(UserError, match=words):
        make_optimizer(network, LearningRates(optimizer=optimizer), arguments=arguments)


def test_the_table_says_what_trains_how():
    network = LoopedTransformer(width=16, num_heads=2, vocab_size=64)
    table = group_table(make_optimizer(network, RATES))
    assert [row["group"] for row in table] == ["matrices", "embed", "head", "norms"]
    assert [row["rule"] for row in table] == ["muonh", "adamw", "adamw", "adamw"]
    assert [row["lr"] for row in table] == [1, 2, 3, 4]
    assert sum(row["parameters"] for row in table) == sum(p.numel() for p in network.parameters())
