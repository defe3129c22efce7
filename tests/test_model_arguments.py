"""The `model` section without torch: the names that `fit` takes, the values that it takes."""

import inspect

import pytest

from looped.architecture import Architecture
from looped.errors import UserError
from looped.model_arguments import (
    ARCHITECTURE_ARGUMENTS,
    TRAINING_ARGUMENTS,
    architecture_of,
    refuse_unknown,
)
from looped.modules.looped_lm import LoopedLM


def test_it_takes_exactly_what_fit_takes():
    """An argument that `fit` knows and this list does not would be refused by mistake."""
    own = set(inspect.signature(LoopedLM).parameters) - {"architecture"}
    assert set(TRAINING_ARGUMENTS) == own
    assert set(ARCHITECTURE_ARGUMENTS) == set(Architecture.__dataclass_fields__)
    refuse_unknown([*TRAINING_ARGUMENTS, *ARCHITECTURE_ARGUMENTS])


def test_the_architecture_of_a_section():
    """Defaults are filled in; what belongs to the training rule changes nothing."""
    section = {"width": 64, "num_heads": 2, "truncation_depth": None, "head_lr": 0.1}
    assert architecture_of(section) == Architecture(width=64, num_heads=2)


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"num_heads": 2}, "required: model.width"),
        ({"width": 64, "num_heads": "two"}, "model.num_heads: got two, expected a whole number"),
        ({"width": 64, "num_heads": 2, "truncation_depth": "half"}, "model.truncation_depth: got"),
        ({"width": 64, "num_heads": 3}, "width 64 is not divisible by num_heads 3"),
    ],
    ids=str,
)
def test_values_are_checked(section, words):
    with pytest.raises(UserError) as caught:
        architecture_of(section)
    assert words in str(caught.value)


def test_unknown_names_offer_the_nearest():
    with pytest.raises(UserError, match=r"truncaton_depth: did you mean model.truncation_depth\?"):
        refuse_unknown(["width", "truncaton_depth"])
    with pytest.raises(UserError, match=r"unknown name model\.foo"):
        refuse_unknown({"foo": 1})
