"""Every trainable parameter lands in exactly one group, the right one."""

import pytest

from looped.modules.looped_transformer import LoopedTransformer
from looped.optimizers.learning_rates import LearningRates
from looped.optimizers.recipe import make_optimizer

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
