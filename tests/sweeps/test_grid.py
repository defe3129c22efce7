"""Reading the grid YAML: what it means and what is refused."""

import pytest

from looped.errors import UserError
from looped.sweeps.grid import read_grid


def test_numbers_keys_and_defaults(write_grid):
    """1e12 is text to YAML 1.1; recipes and seeds have defaults."""
    grid = read_grid(write_grid(tokens=None, budgets={"1e12": [8], 3e12: [16, 24]}))
    assert grid.horizons == ("budget_flops", {1e12: (8,), 3e12: (16, 24)})
    assert grid.recurrences_by_width(3e12) == {16: [1, 2], 24: [1, 2]}
    assert grid.recipes == {"baseline": {}}
    assert grid.seeds == (0,)


def test_widths_of_each_recurrence_count(write_grid):
    """A designed grid is no product: each r may have widths of its own."""
    grid = read_grid(write_grid(tokens={"1e3": {1: [8, 16], 2: [16, 24]}}))
    assert grid.recurrences_by_width(1e3) == {8: [1], 16: [1, 2], 24: [2]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"recurences": [1]}, "unknown name recurences: did you mean recurrences?"),
        ({"bar": 1}, "unknown name bar: choose base, out, effective_depth,"),
        ({"out": None}, "the key out is missing"),
        ({"out": ""}, "out: '' is not a path"),
        ({"out": ["runs"]}, "out: ['runs'] is not a path"),
        ({"base": {"model": {}}}, "base: {'model': {}} is not a path"),
        ({"tokens": None}, "exactly one of the keys budgets"),
        ({"budgets": {1e9: [8]}}, "exactly one of the keys budgets"),
        ({"tokens": {"many": [8]}}, "'many' is not a number"),
        ({"tokens": {"-1": [8]}}, "-1 must be positive"),
        ({"tokens": {float("inf"): [8]}}, "inf must be positive and finite"),
        ({"tokens": {"1e3": {}}}, "tokens 1e3: has no widths"),
        ({"tokens": {"1e3": {1: []}}}, "tokens 1e3, r = 1: [] is not a list"),
        ({"tokens": {"1e3": [0]}}, "tokens 1e3: 0 is below 1"),
        ({"tokens": {"1e3": 8}}, "is not a list"),
        ({"tokens": [8]}, "is not a mapping"),
        ({"tokens": {"1e3": {4: [8]}}}, "4 is not among recurrences [1, 2]"),
        ({"tokens": {"1e3": {1: 8}}}, "tokens 1e3, r = 1: 8 is not a list"),
        ({"min_steps": "few"}, "min_steps: 'few'"),
        ({"min_steps": -3}, "min_steps: -3 is below 1"),
        ({"head_dim": 0}, "head_dim: 0 is below 1"),
        ({"prelude_layers": -1}, "prelude_layers: -1 is below 0"),
        ({"recurrences": []}, "recurrences: []"),
        ({"recurrences": [1, 1]}, "names one value twice"),
        ({"recurrences": [0, 4]}, "recurrences: 0 is below 1: choose 1 or more"),
        ({"recurrences": ["two"]}, "'two' is not a whole number"),
        ({"effective_depth": 4.5}, "effective_depth: 4.5"),
        ({"recipes": {"odd": 3}}, "recipes odd: 3"),
        ({"recipes": {"odd": {"recurrences": 2}}}, "recurrences is the grid's to set"),
        ({"recipes": {"odd": {"width": 64}}}, "width is the grid's to set"),
        (
            {"recipes": {"cut": {"truncaton_depth": "half"}}},
            "recipes cut: unknown name model.truncaton_depth: did you mean model.truncation_depth?",
        ),
        ({"recipes": {"cut": {"foo": 1}}}, "recipes cut: unknown name model.foo"),
        ({"seeds": [-1]}, "seeds: -1 is below 0: choose 0 or more"),
        ({"recipes": []}, "recipes: is not a mapping"),
        ({"recipes": {None: {}}}, "recipes: None is not text: write it in quotes"),
        ({"recipes": {True: {}}}, "recipes: True is not text"),
        *(
            ({"recipes": {name: {}}}, f"recipes: {name!r} cannot be part of a file name")
            for name in ("a/b", "..", "-x", ".hidden", "x" * 65)
        ),
    ],
    ids=str,
)
def test_mistakes_name_the_key(write_grid, changes, words):
    with pytest.raises(UserError) as caught:
        read_grid(write_grid(**changes))
    assert words in str(caught.value)
    assert "grid.yaml" in str(caught.value)


def test_nulls_and_homes(write_grid, tmp_path, monkeypatch):
    """`head_dim: null` is that of the base, as if left out; ~ is the user's home."""
    monkeypatch.setenv("HOME", str(tmp_path))
    path = write_grid(out="~/runs")
    path.write_text(path.read_text().replace("head_dim: 8", "head_dim: null"))
    grid = read_grid(path)
    assert grid.head_dim is None
    assert grid.out == tmp_path / "runs"


def test_unreadable_files(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        read_grid(tmp_path / "nowhere.yaml")
    for text, words in (("a: [", "not YAML"), ("just text", "not a mapping")):
        (tmp_path / "bad.yaml").write_text(text)
        with pytest.raises(UserError, match=words):
            read_grid(tmp_path / "bad.yaml")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("out:", "seeds: [0]\nseeds: [1]\nout:", "the key seeds on line"),
        ("6.4e2:", "6.4e+2: [8]\n  640:", "the key 640 on line"),
        ("recurrences:", "recipes: {a: {streams: 2}, a: {}}\nrecurrences:", "the key a on line"),
    ],
    ids=["top", "tokens", "recipes"],
)
def test_a_key_given_twice(write_grid, before, after, words):
    """Not the last of the two, silently: half of the grid would be missing."""
    path = write_grid()
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    with pytest.raises(UserError) as caught:
        read_grid(path)
    assert words in str(caught.value)
    assert "grid.yaml" in str(caught.value)
