"""Counting and validation against the published figures (tests/data/counts.csv)."""

import csv
from typing import Any

import pytest

from looped.architecture import Architecture
from looped.errors import UserError
from tests.conftest import DATA


def published_counts() -> list[dict[str, str]]:
    with (DATA / "counts.csv").open() as stream:
        return list(csv.DictReader(stream))


def architecture_of(row: dict[str, str]) -> Architecture:
    integers = [
        "width",
        "num_heads",
        "num_kv_heads",
        "prelude_layers",
        "recurrent_layers",
        "coda_layers",
        "recurrences",
        "streams",
        "vocab_size",
        "seq_len",
    ]
    arguments: dict[str, Any] = {name: int(row[name]) for name in integers}
    if row["truncation_depth"]:
        arguments["truncation_depth"] = int(row["truncation_depth"])
    if arguments["streams"] == 1:
        arguments["injection"] = row["injection"]
    return Architecture(**arguments)


@pytest.mark.parametrize(
    "row", published_counts(), ids=lambda r: f"s{r['size']}-r{r['recurrences']}"
)
def test_published_counts_come_out_exactly(row):
    """All 71 published configurations: every parameter group and the FLOPs, to the last digit."""
    architecture = architecture_of(row)
    groups = architecture.parameter_groups()
    counted = groups.as_record() | {
        "non_embedding": groups.total - groups.embedding - groups.head,
    }
    expected = {name[7:]: int(value) for name, value in row.items() if name.startswith("params_")}
    assert {name: counted[name] for name in expected} == expected
    assert groups.n_once + groups.n_rec == expected["non_embedding"]
    assert architecture.flops_per_token() == int(row["flops_per_token"])


def test_default_injection_is_the_published_one():
    """Linear for loops, none for one pass and for streams."""
    assert Architecture(width=8, num_heads=2, recurrences=2).resolved_injection == "linear"
    assert Architecture(width=8, num_heads=2, recurrences=1).resolved_injection == "none"
    assert Architecture(width=8, num_heads=2, streams=2).resolved_injection == "none"


def test_causal_convention_halves_attention_alone():
    """The difference of the conventions is half the attention term, written out here by hand."""
    architecture = Architecture(
        width=32, num_heads=2, recurrences=3, truncation_depth=2, recurrent_layers=2, seq_len=64
    )
    attention = 32 * 64 * (12 * (2 + 2) + (12 * 2 + 4 * 1) * 2)
    difference = architecture.flops_per_token() - architecture.flops_per_token("causal")
    assert difference == attention // 2


def test_a_pass_without_gradient_costs_a_third():
    """6 per parameter with gradient, 2 without, so k of r passes cost (6k + 2(r-k)) / 6r."""
    sizes = {"width": 32, "num_heads": 2, "prelude_layers": 0, "coda_layers": 0, "vocab_size": 64}
    full = Architecture(**sizes, recurrences=6, injection="none")
    half = Architecture(**sizes, recurrences=6, truncation_depth=3, injection="none")
    head = 6 * full.parameter_groups().head
    assert (half.flops_per_token() - head) * 18 == (full.flops_per_token() - head) * 12


def test_unshared_copies_cost_what_the_shared_block_costs():
    """The control has r times the recurrent parameters and the very same compute."""
    for cut in (None, 1):
        sizes = {"width": 32, "num_heads": 2, "recurrences": 3, "truncation_depth": cut}
        shared, unshared = Architecture(**sizes), Architecture(**sizes, shared=False)
        assert unshared.flops_per_token() == shared.flops_per_token()
        assert unshared.parameter_groups().recurrent == 3 * shared.parameter_groups().recurrent
        assert unshared.parameter_groups().n_once == shared.parameter_groups().n_once


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"width": 30, "num_heads": 4}, "width 30 is not divisible by num_heads 4"),
        ({"width": 12, "num_heads": 4}, "is odd"),
        ({"width": 0}, "width 0"),
        ({"num_heads": 0}, "num_heads 0"),
        ({"num_kv_heads": 3}, "num_kv_heads 3"),
        ({"num_kv_heads": 0}, "num_kv_heads 0"),
        ({"recurrences": 0}, "recurrences 0"),
        ({"truncation_depth": 0}, "truncation_depth 0"),
        ({"recurrences": 2, "truncation_depth": 3}, "truncation_depth 3"),
        ({"streams": 0}, "streams 0"),
        ({"streams": 2, "injection": "linear"}, "streams 2 together with injection linear"),
        ({"streams": 2, "injection": "none"}, "streams 2 together with injection none"),
        ({"injection": "gated"}, "'gated'"),
        ({"recurrent_layers": 0}, "recurrent_layers 0"),
        ({"prelude_layers": -1}, "prelude_layers -1"),
        ({"vocab_size": 0}, "vocab_size 0"),
        ({"seq_len": 0}, "seq_len 0"),
        ({"logit_softcap": 0.0}, "logit_softcap 0.0"),
    ],
)
def test_impossible_arguments_are_named(arguments, words):
    """Each mistake is one line that names the value."""
    with pytest.raises(UserError) as caught:
        Architecture(**({"width": 32, "num_heads": 4} | arguments))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
