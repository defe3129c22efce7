"""Real messages of jsonargparse, condensed."""

import argparse
from typing import Literal

import pytest
from jsonargparse import ArgumentParser

from looped.parser_errors import one_line


class Thing:
    """Something to configure.

    Args:
        size: a number.
        kind: a name.
    """

    def __init__(self, size: int, kind: Literal["a", "b"] | None = None) -> None: ...


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"size": "big"}, "thing.size: got big, expected a whole number"),
        ({"size": 1.5}, "thing.size: got 1.5, expected a whole number"),
        ({"size": 1, "kind": "c"}, "thing.kind: got c, expected a, b or null"),
        ({"size": 1, "knd": "a"}, "unknown name thing.knd: did you mean thing.kind?"),
        ({"size": 1, "xyzzy": "a"}, "unknown name thing.xyzzy: see --help for valid names"),
    ],
)
def test_messages_of_the_installed_version(values, expected):
    """A new jsonargparse with other words would show here first."""
    parser = ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(Thing, "thing")
    with pytest.raises(argparse.ArgumentError) as caught:
        parser.parse_object({"thing": values})
    assert one_line(str(caught.value), ["thing.size", "thing.kind"]) == expected


def test_a_misspelt_section_is_offered_when_its_key_is_unknown_too():
    known = ["trainer.devices", "model.width"]
    message = "Key 'trainr.foo' is not expected"
    assert one_line(message, known) == "unknown name trainr.foo: did you mean trainer?"
    assert "see --help" in one_line("Key 'trainer.foo' is not expected", known)


def test_a_part_of_what_has_none_points_to_what_has():
    """`--thing.size.unit` reads like a name, and is a mistake for one beside it."""
    parser = ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(Thing, "thing")
    with pytest.raises(argparse.ArgumentError) as caught:
        parser.parse_args(["--thing.size.unit=3"])
    known = ["thing.size", "thing.size_args", "thing.kind"]
    assert one_line(str(caught.value), known) == (
        "unknown name thing.size.unit: thing.size is one value without parts; there is "
        "thing.size_args"
    )


def test_what_is_not_known_stays_whole_but_in_one_line():
    assert one_line("first\n   second", []) == "first second"
