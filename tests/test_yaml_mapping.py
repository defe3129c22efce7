"""Reading YAML: what PyYAML reads, but no key that would silently be lost."""

import pytest
import yaml

from looped.errors import UserError
from looped.yaml_mapping import read_mapping


@pytest.fixture
def read(tmp_path):
    def of(text):
        path = tmp_path / "a.yaml"
        path.write_text(text)
        return read_mapping(path)

    return of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", "the key a on line 3 repeats a on line 1"),
        ("a:\n  - {b: 1}\n  - c: 1\n    c: 2\n", "the key c on line 4 repeats c on line 3"),
        ("t:\n  2.5e5: [1]\n  250000: [2]\n", "the key 250000 on line 3 repeats 2.5e5 on line 2"),
        ("'a': 1\n\"a\": 2\n", "the key a on line 2 repeats a on line 1"),
        ("a: {b: &x {c: 1, c: 2}}\n", "the key c on line 1 repeats c on line 1"),
        (".nan: 1\n.nan: 2\n", "the key .nan on line 2"),
    ],
    ids=str,
)
def test_repeated_keys_are_refused(read, text, words):
    with pytest.raises(UserError) as caught:
        read(text)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "a: {b: 1, c: 2}\nd: {b: 1, c: 2}\n",
        "a: &x {b: 1, c: 2}\nd: {<<: *x, b: 3}\ne: {<<: *x, <<: *x}\nf: [*x, *x]\n",
        "1e6: a\n1e7: b\n0: c\n",
        "=: 1\n~: 2\n",
    ],
    ids=str,
)
def test_everything_else_is_read_as_pyyaml_reads_it(read, text):
    """Merged keys may be overridden, and one mapping may stand in many places."""
    assert read(text) == yaml.safe_load(text)


def test_anchors_that_contain_themselves_end(read):
    content = read("a: &x [*x, 1]\n")
    assert content["a"][0] is content["a"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a mapping"),
        ("- a", "not a mapping"),
        (
            "a: [",
            'not YAML: while parsing .* in "a.yaml", line 1',
        ),
        ("a: 1\n---\nb: 1\n", "not YAML: expected a single document"),
        ("? [a]\n: 1\n", "not YAML: while constructing a mapping"),
        ("a: 2026-13-01\n", "not YAML: month must be"),
    ],
    ids=str,
)
def test_what_is_no_mapping(read, text, words):
    with pytest.raises(UserError, match=words):
        read(text)
