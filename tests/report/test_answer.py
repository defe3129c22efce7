"""The sentence that answers the question."""

from looped.report.answer import Answer
from looped.scaling.analysis import analyse
from tests.scaling.grids import published, synthetic


def answer(runs, **options) -> Answer:
    return Answer.of("baseline", analyse(runs, resamples=10, **options))


def test_the_published_runs():
    """phi, what it means, how sure, from how much; 4^0.4576 = 1.886."""
    assert answer(published("baseline")).sentence == (
        "One recurrence is worth r^0.46: at r = 4 the shared block counts as 1.9 blocks. "
        "95 % interval 0.42 to 0.49, 116 runs."
    )


def test_the_example_has_a_count_that_was_trained():
    """R = 4 where it was, else the nearest."""
    assert answer(synthetic(recurrences=(1, 2, 8))).recurrences == 2
    assert answer(synthetic(recurrences=(1, 8))).recurrences == 8


def test_runs_that_cannot_tell_say_so():
    """No number, and the reasons."""
    few = answer(synthetic().iloc[:3])
    assert few.sentence == "These 3 runs cannot tell what a recurrence is worth."
    assert few.worth is None
    assert any("3 runs" in reason for reason in few.because)
    assert answer(synthetic().iloc[:1]).sentence.startswith("This run cannot tell")


def test_a_phi_that_was_held_is_no_finding():
    """It was not measured and has no interval."""
    held = answer(synthetic(), fix={"phi": 0.5})
    assert held.sentence == (
        "A recurrence was taken to be worth r^0.50, not measured: at r = 4 the shared block counts "
        "as 2.0 blocks. 96 runs."
    )
