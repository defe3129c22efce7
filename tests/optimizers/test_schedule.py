"""The decay against its closed form."""

from itertools import pairwise

import pytest

from looped.optimizers.schedule import linear_decay


def test_linear_from_one_to_a_tenth():
    """Full at the first step, a tenth at the last, a straight line between, a tenth after."""
    factors = [linear_decay(step, 10) for step in range(12)]
    assert factors[0] == 1
    assert factors[9:] == pytest.approx([0.1, 0.1, 0.1])
    assert [a - b for a, b in pairwise(factors[:10])] == pytest.approx([0.1] * 9)


def test_a_single_step_has_the_full_rate():
    assert linear_decay(0, 1) == 1
