"""Numbers as a reader says them."""

import pytest

from looped.scaling.quantity import level_in_words, quantity

EXPECTED = {
    0.0: "0",
    1.0: "1",
    999.4: "999",
    999.6: "1k",  # rounding carries into the next prefix
    67800356.0: "67.8M",
    1e9: "1G",
    9.994e14: "999T",
    9.996e14: "10\u00b9\u2075",
    4.64e17: "4.64\u00d710\u00b9\u2077",
    1e18: "10\u00b9\u2078",
    2.5e-4: "2.5\u00d710\u207b\u2074",
}


@pytest.mark.parametrize(("value", "text"), EXPECTED.items())
def test_quantity(value, text):
    """SI prefixes as far as readers know them, powers of ten beyond."""
    assert quantity(value) == text


def test_a_level_keeps_its_unit():
    """As does one that is no number at all."""
    assert level_in_words("4.64e+17 FLOPs") == "4.64\u00d710\u00b9\u2077 FLOPs"
    assert level_in_words("2.5e+05 tokens") == "250k tokens"
    assert level_in_words("all runs") == "all runs"
