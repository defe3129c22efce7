"""Numbers in words."""

import pytest

from looped.quantities import counted, duration, short


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(5, "5 s"), (99.6, "1.7 min"), (600, "10 min"), (7200, "2.0 h"), (864_000, "10.0 d")],
)
def test_durations_in_words(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("number", "words"), [(7, "7"), (999.6, "1k"), (28_323_840, "28.3M"), (2.5e15, "2.5e+03T")]
)
def test_numbers_with_a_suffix(number, words):
    assert short(number) == words


def test_one_is_singular():
    assert [counted(n, "run") for n in (0, 1, 2000)] == ["0 runs", "1 run", "2,000 runs"]
