"""Which models are controls."""

import pytest

from looped.architecture import Architecture
from looped.controls import control_of


@pytest.mark.parametrize(
    ("arguments", "control"),
    [
        ({"recurrences": 4}, None),
        ({"recurrences": 4, "shared": False}, "unshared"),
        ({"recurrences": 4, "shared": False, "streams": 2}, "unshared"),
        ({"recurrences": 1}, None),
        ({"recurrences": 1, "injection": "none"}, None),
        ({"recurrences": 1, "injection": "additive"}, "injected"),
        ({"recurrences": 1, "streams": 2}, "injected"),
        ({"recurrences": 1, "shared": False}, None),  # a single pass shares nothing anyway
    ],
    ids=str,
)
def test_by_its_constructor_arguments(arguments, control):
    """The same rule for the arguments of an architecture and for an older record without some."""
    architecture = Architecture(width=64, num_heads=1, **arguments)
    assert control_of(architecture.as_record()) == control
    assert control_of(arguments) == control
