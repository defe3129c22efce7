"""The verdict on two recipes: did the worth of a recurrence move, or the price of being looped?

Decided is on the pair of the offset law, delta phi and delta offset, with intervals that hold both
together (`law_differences.py`). The verdict on phi alone is asked of every law with one phi: where
they disagree, it depends on the law chosen, and no single number should be quoted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from looped.scaling.law_differences import Difference, Ends, LawDifference
from looped.scaling.loop_terms import Form

Verdict = Literal["better", "worse", "not distinguishable", "unknown"]

WITH_ONE_PHI: tuple[Form, ...] = ("offset", "gain_offset")


@dataclass(frozen=True, kw_only=True)
class PairVerdict:
    """The second recipe against the first.

    Attributes:
        per_recurrence: on delta phi of the offset law: better where a recurrence is worth more.
        being_looped: on delta offset: better where being looped costs less loss.
        moved: which of the two moved, `per recurrence` and `being looped`.
        p: of the test that neither moved; null without their joint covariance.
        differ: whether that test rejects, or one of the two moved.
        phi_by_law: the verdict on phi alone, by the plain law and each other with one phi.
        depends_on_law: whether two laws give verdicts on phi that are known and not the same.
    """

    per_recurrence: Verdict
    being_looped: Verdict
    moved: tuple[str, ...]
    p: float | None
    differ: bool
    phi_by_law: dict[Form, Verdict]
    depends_on_law: bool


def pair_verdict(
    laws: Mapping[Form, LawDifference], *, plain: Verdict, level: float
) -> PairVerdict | None:
    """Judge the pair; null where the offset law cannot be told in both recipes.

    Args:
        laws: as `law_differences` gives them.
        plain: the verdict on phi by the plain law.
        level: at which a test rejects is 1 - level.
    """
    pair = laws["offset"]
    if not pair.differences:
        return None
    phi, offset = pair.differences["phi"], pair.differences["offset"]
    per_recurrence = verdict_on([phi.simultaneous])
    being_looped = verdict_on([_reversed(offset.simultaneous)])
    verdicts = {"per recurrence": per_recurrence, "being looped": being_looped}
    moved = tuple(name for name, v in verdicts.items() if v in ("better", "worse"))
    by_law: dict[Form, Verdict] = {"plain": plain}
    for form in WITH_ONE_PHI:
        by_law[form] = _on_phi(laws[form].differences)
    known = {verdict for verdict in by_law.values() if verdict != "unknown"}
    return PairVerdict(
        per_recurrence=per_recurrence,
        being_looped=being_looped,
        moved=moved,
        p=pair.p_cells,
        differ=bool(moved) or (pair.p_cells is not None and pair.p_cells < 1 - level),
        phi_by_law=by_law,
        depends_on_law=len(known) > 1,
    )


def verdict_on(intervals: list[Ends | None]) -> Verdict:
    """Better or worse where all known intervals lie on one side of 0."""
    known = [ends for ends in intervals if ends is not None]
    if not known:
        return "unknown"
    if all(low > 0 for low, _ in known):
        return "better"
    return "worse" if all(high < 0 for _, high in known) else "not distinguishable"


def _on_phi(differences: Mapping[str, Difference]) -> Verdict:
    return verdict_on([differences["phi"].ends]) if "phi" in differences else "unknown"


def _reversed(ends: Ends | None) -> Ends | None:
    """An offset that falls is for the better."""
    return None if ends is None else (-ends[1], -ends[0])
