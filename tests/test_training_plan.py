"""From a horizon to steps: closed forms and the mistakes."""

import pytest

from looped.architecture import Architecture
from looped.errors import UserError
from looped.training_plan import plan_training

RUN = {"flops_per_token": 1000, "tokens_per_step": 50, "non_embedding": 200}


@pytest.mark.parametrize(
    ("horizon", "steps"),
    [
        ({"budget_flops": 1e6}, 20),  # 1e6 / (1000 * 50)
        ({"budget_flops": 1.024e6}, 20),
        ({"budget_flops": 1.026e6}, 21),
        ({"tokens": 1e3}, 20),
        ({"steps": 20}, 20),
        ({"tokens_per_parameter": 5}, 20),  # 5 * 200 / 50
    ],
)
def test_every_kind_of_horizon(horizon, steps):
    """Steps are rounded to the nearest, tokens and FLOPs follow from them exactly."""
    plan = plan_training(**RUN, **horizon)
    assert plan.steps == steps
    assert plan.tokens == steps * 50
    assert plan.train_flops == steps * 50_000
    assert plan.budget_flops == (
        int(horizon["budget_flops"]) if "budget_flops" in horizon else None
    )


def test_the_published_token_counts():
    """D = budget / F at 1e18: 954.8M tokens for s = 10, r = 4 and 973.1M for r = 1."""
    sizes = {"width": 640, "num_heads": 5}
    for layers, r, published in ((4, 4, 954.8e6), (16, 1, 973.1e6)):
        architecture = Architecture(**sizes, recurrent_layers=layers, recurrences=r)
        flops = architecture.flops_per_token()
        plan = plan_training(
            flops_per_token=flops, tokens_per_step=2**18, non_embedding=1, budget_flops=1e18
        )
        assert 1e18 / flops == pytest.approx(published, abs=0.05e6)
        assert plan.tokens == pytest.approx(published, abs=2**17 + 0.05e6)


@pytest.mark.parametrize(
    ("horizon", "words"),
    [
        ({}, "got none"),
        ({"tokens": 5, "steps": 1}, "horizon.tokens and horizon.steps"),
        ({"tokens": 24}, "horizon.tokens 24 is below half a step"),
        ({"steps": 0}, "horizon.steps 0 must be a positive number"),
        ({"budget_flops": -1}, "horizon.budget_flops -1"),
        ({"budget_flops": float("nan")}, "horizon.budget_flops nan"),
    ],
)
def test_impossible_horizons_are_named(horizon, words):
    with pytest.raises(UserError, match=words):
        plan_training(**RUN, **horizon)
