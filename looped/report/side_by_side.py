"""Recipes side by side: which of loop and training got better, and by which law."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from looped.scaling.compare import Comparison
from looped.scaling.compare_report import verdict
from looped.scaling.law_differences import Difference
from looped.scaling.quantity import signed

PHI = "\u03c6"


@dataclass(frozen=True, kw_only=True)
class SideBySide:
    """Recipes compared with one of them.

    Attributes:
        against: the recipe that the others are compared with.
        comparisons: by the name of the other recipe.
        why_not: reasons why a recipe could not be compared, by its name.
    """

    against: str
    comparisons: dict[str, Comparison] = field(default_factory=dict)
    why_not: dict[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Of each other recipe: the verdict, the numbers behind it, and whether the law matters."""
        rows: list[dict[str, Any]] = [
            {"recipe": name, "why_not": why.rstrip(".")} for name, why in self.why_not.items()
        ]
        return rows + [_row(name, found) for name, found in self.comparisons.items()]


def _row(name: str, found: Comparison) -> dict[str, Any]:
    percent = f"{100 * found.level:g} %"
    bootstrap = None if found.low is None or found.high is None else (found.low, found.high)
    plain = {
        f"change in {PHI}": None if found.delta_phi is None else signed(found.delta_phi),
        f"{percent}, jackknife": _ends(found.jackknife),
        f"{percent}, bootstrap": _ends(bootstrap),
    }
    if found.loss is not None:
        plain[f"best loss at equal {found.loss.at}"] = signed(found.loss.value, digits=4)
        plain[f"{percent}, between budgets"] = _ends(found.loss.ends, digits=4)
    return {
        "recipe": name,
        "why_not": None,
        "verdict": verdict(found, name).removeprefix("verdict: "),
        "plain": _known(plain),
        "pair": _known(_pair(found.laws["offset"].differences, percent)),
        "by_choice": {"law": _by_law(found), "estimator": _by_estimator(found)},
    }


def _pair(differences: Mapping[str, Difference], percent: str) -> dict[str, str | None]:
    """Change per recurrence and change for being looped, with intervals that hold both together."""
    if not differences:
        return {}
    phi, offset = differences["phi"], differences["offset"]
    return {
        f"change in {PHI}": signed(phi.value),
        f"{percent}, both together": _ends(phi.simultaneous),
        "change in the offset (log L)": signed(offset.value, digits=4),
        f"{percent}, both together ": _ends(offset.simultaneous, digits=4),
    }


def _by_law(found: Comparison) -> list[tuple[str, str, str]]:
    """Law, verdict and change in phi, where the verdict on phi depends on the law chosen."""
    if found.pair is None or not found.pair.depends_on_law:
        return []
    return [
        (form.replace("_", " "), words, signed(found.laws[form].differences["phi"].value))
        for form, words in found.pair.phi_by_law.items()
        if words != "unknown"
    ]


def _by_estimator(found: Comparison) -> list[tuple[str, str, str]]:
    """Estimator, verdict and change in phi, where the verdict on phi depends on it."""
    other = found.other_estimator
    if not other.disagrees or other.delta_phi is None or found.delta_phi is None:
        return []
    changes = [
        (found.first.estimator, found.verdict, found.delta_phi),
        (other.name, other.verdict, other.delta_phi.value),
    ]
    return [(name.replace("_", " "), words, signed(value)) for name, words, value in changes]


def _known(figures: Mapping[str, str | None]) -> list[tuple[str, str]]:
    return [(name, text) for name, text in figures.items() if text is not None]


def _ends(ends: tuple[float, float] | None, *, digits: int = 3) -> str | None:
    if ends is None:
        return None
    return f"{signed(ends[0], digits=digits)} to {signed(ends[1], digits=digits)}"
