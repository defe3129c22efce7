"""The transfer rules at points where they can be worked out by hand."""

import pytest

from looped.architecture import Architecture
from looped.optimizers.learning_rates import LearningRates, reference_tokens
from looped.training_plan import TrainingPlan

LOOPED = Architecture(width=640, num_heads=5)
PLAIN = Architecture(width=640, num_heads=5, recurrences=1, recurrent_layers=16)


def plan(tokens: int, tokens_per_step: int) -> TrainingPlan:
    return TrainingPlan(
        steps=tokens // tokens_per_step, tokens_per_step=tokens_per_step, flops_per_token=1
    )


def test_reference_tokens_of_both_kinds():
    """Ten per effective parameter: a block of width 640 has 12 * 640^2 + 1280 parameters."""
    block = 12 * 640**2 + 2 * 640
    assert reference_tokens(PLAIN) == 10 * (20 * block + 3 * 640)
    assert reference_tokens(LOOPED) == 10 * (4 * block + 3 * 640 + 4 * (4 * block + 2 * 640**2))


def test_at_the_reference_point_nothing_changes():
    tokens = reference_tokens(LOOPED)
    rates = LearningRates()
    moved = rates.transferred(LOOPED, plan(tokens - tokens % 2**18, 2**18))
    for name in ("matrix_lr", "embed_lr", "head_lr", "norm_lr", "stream_lr"):
        assert getattr(moved, name) == pytest.approx(getattr(rates, name), rel=1e-4)


def test_each_rule_has_its_own_exponents():
    """Quarter the width, 1/16 of the batch, 1/32 of the tokens, worked out by hand."""
    small = Architecture(width=160, num_heads=5)
    tokens = reference_tokens(LOOPED) // 32
    moved = LearningRates().transferred(small, plan(tokens - tokens % 2**14, 2**14))
    batch = 16**-0.558
    assert moved.matrix_lr == pytest.approx(0.014 * 32**0.32 * batch, rel=1e-3)
    assert moved.embed_lr == pytest.approx(0.3 * 2 * batch)
    assert moved.head_lr == pytest.approx(0.004 * 2 * batch)
    assert moved.norm_lr == pytest.approx(0.005 * 2)
    assert moved.stream_lr == pytest.approx(0.01 * 2)
    adamw = LearningRates(optimizer="adamw").transferred(small, plan(2**24, 2**14))
    assert adamw.matrix_lr == pytest.approx(0.014 * 2 * batch)
