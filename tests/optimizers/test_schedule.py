"""The decay against its closed form."""

from itertools import pairwise

import pytest

from looped.optimizers.schedule import linear_decay, warmup_stable_decay


def test_linear_from_one_to_a_tenth():
    """Full at the first step, a tenth at the last, a straight line between, a tenth after."""
    factors = [linear_decay(step, 10) for step in range(12)]
    assert factors[0] == 1
    assert factors[9:] == pytest.approx([0.1, 0.1, 0.1])
    assert [a - b for a, b in pairwise(factors[:10])] == pytest.approx([0.1] * 9)


def test_a_single_step_has_the_full_rate():
    assert linear_decay(0, 1) == 1


def test_warmup_stable_decay():
    """Ten rising steps, seventy at 1, twenty falling to a tenth: worked out by hand."""
    factors = [
        warmup_stable_decay(step, 100, warmup_fraction=0.1, decay_fraction=0.2)
        for step in range(100)
    ]
    assert factors[:10] == pytest.approx([n / 11 for n in range(1, 11)])
    assert factors[10:80] == [1.0] * 70
    assert factors[80] == 1.0
    assert factors[99] == pytest.approx(0.1)
    assert [a - b for a, b in pairwise(factors[80:])] == pytest.approx([0.9 / 19] * 19)
