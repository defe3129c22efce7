"""The verdict on the pair, and what is said of it."""

import pytest

from looped.scaling.law_differences import Difference, LawDifference
from looped.scaling.pair_verdict import pair_verdict, verdict_on


def law(form, p=None, **moved):
    """A law whose parameters moved by (value, error), as if errors were known exactly."""
    differences = {
        name: Difference(
            value=value,
            stderr=error,
            ends=(value - 2 * error, value + 2 * error),
            simultaneous=(value - 2.3 * error, value + 2.3 * error),
        )
        for name, (value, error) in moved.items()
    }
    return LawDifference(form=form, differences=differences, faults=(), p_cells=p)


def judge(phi, offset, *, p, factor=(0.1, 0.1), plain="better"):
    laws = {
        "plain": law("plain", phi=phi),
        "offset": law("offset", p=p, phi=phi, offset=offset),
        "gain_offset": law("gain_offset", phi=factor, log_factor=(0.0, 1.0)),
        "gains": law("gains"),
    }
    return pair_verdict(laws, plain=plain, level=0.95)


@pytest.mark.parametrize(
    ("phi", "offset", "moved", "verdicts"),
    [
        ((0.3, 0.1), (0.0, 0.01), ("per recurrence",), ("better", "not distinguishable")),
        ((-0.3, 0.1), (0.03, 0.01), ("per recurrence", "being looped"), ("worse", "worse")),
        ((0.0, 0.1), (-0.03, 0.01), ("being looped",), ("not distinguishable", "better")),
        ((0.22, 0.1), (0.0, 0.01), (), ("not distinguishable", "not distinguishable")),
    ],
)
def test_which_of_the_two_moved(phi, offset, moved, verdicts):
    """An offset that falls is for the better; each needs its simultaneous interval off 0."""
    found = judge(phi, offset, p=0.2)
    assert found.moved == moved
    assert (found.per_recurrence, found.being_looped) == verdicts
    assert found.differ == bool(moved)


def test_the_pair_may_differ_where_neither_is_told():
    """Errors that hang together: the ellipse misses 0 although the box holds it."""
    found = judge((0.2, 0.1), (0.02, 0.01), p=0.001)
    assert (found.moved, found.differ, found.p) == ((), True, 0.001)


def test_the_verdict_on_phi_may_depend_on_the_law():
    """Known verdicts that disagree are told; a law that cannot be told does not count."""
    agree = judge((0.3, 0.1), (0.0, 0.01), p=0.01, factor=(0.4, 0.1))
    assert agree.phi_by_law == {"plain": "better", "offset": "better", "gain_offset": "better"}
    assert not agree.depends_on_law
    assert judge((0.3, 0.1), (0.0, 0.01), p=0.01).depends_on_law
    unknown = judge((0.3, 0.1), (0.0, 0.01), p=0.01, factor=(0.4, 0.1), plain="unknown")
    assert not unknown.depends_on_law


def test_without_the_offset_law_there_is_no_pair():
    """Null, so that the verdict falls back on phi of the plain law."""
    laws = {form: law(form) for form in ("plain", "gains", "offset", "gain_offset")}
    assert pair_verdict(laws, plain="better", level=0.95) is None


def test_intervals_must_agree():
    """Better or worse only where every known interval says so."""
    assert verdict_on([(0.1, 0.3), (0.05, 0.4)]) == "better"
    assert verdict_on([(0.1, 0.3), (-0.05, 0.4)]) == "not distinguishable"
    assert verdict_on([(-0.3, -0.1), None]) == "worse"
    assert verdict_on([None, None]) == "unknown"
