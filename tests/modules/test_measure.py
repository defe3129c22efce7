"""The FLOP formula against torch's own counter, every difference explained to the last FLOP."""

import pytest

from looped.architecture import Architecture
from looped.modules.measure import measured_flops_per_token

SIZES = {"width": 64, "num_heads": 4, "recurrent_layers": 2, "vocab_size": 1000, "seq_len": 128}


def norm_gain_flops(a: Architecture) -> int:
    """The formula counts the gains inside blocks like matrices; torch's counter sees no product."""
    with_gradient = a.prelude_layers + a.coda_layers + a.gradient_passes * a.recurrent_layers
    without = (a.recurrences - a.gradient_passes) * a.recurrent_layers
    return 2 * a.width * (6 * with_gradient + 2 * without)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"recurrences": 1},
        {"truncation_depth": 2},
        {"truncation_depth": 1},
        {"injection": "additive"},
        {"num_kv_heads": 1},
        {"shared": False, "truncation_depth": 2},
    ],
    ids=str,
)
def test_formula_and_counter_differ_by_the_norm_gains_alone(arguments):
    """A pass, a layer or the injection counted once too often or too rarely would show here."""
    architecture = Architecture(**SIZES, **arguments)
    formula, measured = architecture.flops_per_token(), measured_flops_per_token(architecture)
    assert formula - measured == norm_gain_flops(architecture)


def test_streams_differ_by_norm_gains_and_the_element_wise_beta():
    """Alpha and M act as matrix products; beta (K of K^2 + 2K) multiplies element by element."""
    a = Architecture(**SIZES, streams=2)
    beta = 6 * a.recurrences * a.streams * a.width
    assert a.flops_per_token() - measured_flops_per_token(a) == norm_gain_flops(a) + beta


@pytest.mark.parametrize("arguments", [{}, {"truncation_depth": 2}, {"streams": 2}], ids=str)
def test_at_the_published_size_both_agree_to_a_thousandth(arguments):
    """At width 640, T = 2048 what the counter cannot see is below 0.1 %."""
    a = Architecture(width=640, num_heads=5, **arguments)
    assert measured_flops_per_token(a) == pytest.approx(a.flops_per_token(), rel=1e-3)
