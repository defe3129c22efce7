"""What `looped compare` says: the comparison in words, and as JSON."""

from dataclasses import asdict

from looped.scaling.compare import Comparison
from looped.scaling.law_differences import Difference, LawDifference
from looped.scaling.loss_difference import LossDifference
from looped.scaling.report_json import law_json

MORE_OR_LESS = {"better": "more", "worse": "less"}


def report(result: Comparison, first: str, *, second: str) -> list[str]:
    """The comparison in words, line by line."""
    lines = []
    for name, fit in ((first, result.first), (second, result.second)):
        value = "cannot be told" if fit.phi is None else f"= {fit.phi:.3f}"
        lines.append(f"{name}: phi {value}  ({fit.num_runs} runs, {fit.num_cells} cells)")
        lines += [f"  because: {fault}" for fault in fit.faults]
    percent = f"{100 * result.level:g} %"
    if result.delta_phi is not None:
        ends = "no interval"
        if result.low is not None and result.high is not None:
            ends = f"[{result.low:+.3f}, {result.high:+.3f}]"
        lines.append(
            f"delta phi = {result.delta_phi:+.3f}  {ends}  ({percent}, joint block bootstrap, "
            f"{result.shared_cells} shared cells of r = 1)"
        )
        if result.jackknife is not None:
            low, high = result.jackknife
            lines.append(
                f"            [{low:+.3f}, {high:+.3f}]  ({percent}, joint delete-a-cell jackknife)"
            )
        if result.failed:
            lines.append(
                f"warning: {result.failed} of {result.resamples} resamples failed and were left out"
            )
    lines += _beyond_phi(result, first, second)
    lines += _against_the_plain_law(result)
    if result.loss is None:
        lines.append("best loss: nothing to compare, no r > 1 that both have at one budget")
    else:
        parts = ", ".join(f"r = {r}: {v:+.4f}" for r, v in result.loss.by_recurrence.items())
        lines.append(
            f"best loss at equal {result.loss.at}: {result.loss.value:+.4f} nats on average  "
            f"{_ends(result.loss.ends, 4)}  ({parts})"
        )
        levels = ", ".join(f"{name}: {v:+.4f}" for name, v in result.loss.by_level.items())
        lines.append(f"  {levels}")
    lines += [f"warning: {warning}" for warning in result.warnings]
    return [*lines, verdict(result, second), *_by_law(result), *_by_estimator(result)]


def verdict(result: Comparison, second: str) -> str:
    """The loop and the training, each in words."""
    line = f"verdict: {_of_the_loop(result, second)}"
    if result.loss is None:
        return line
    return f"{line}; the best loss of {second} {_of_loss(result.loss)}"


def _of_loss(loss: LossDifference) -> str:
    change = "lower" if loss.value < 0 else "higher"
    if loss.ends is None:
        return f"is {change} at the one {loss.at} that both have, which alone does not tell"
    if loss.ends[0] <= 0 <= loss.ends[1]:
        return f"at equal {loss.at} is not distinguishable by these runs"
    return f"at equal {loss.at} is {change}"


def _of_the_loop(result: Comparison, second: str) -> str:
    """On the pair where it can be told, else on phi of the plain law."""
    if result.pair is None:
        return {
            "better": f"the loop is better in {second}: a recurrence is worth more",
            "worse": f"the loop is worse in {second}: a recurrence is worth less",
            "not distinguishable": "the loops are not distinguishable by these runs",
            "unknown": "these runs cannot tell the loops apart",
        }[result.verdict]
    per_recurrence, being_looped = result.pair.per_recurrence, result.pair.being_looped
    changes = []
    if "per recurrence" in result.pair.moved:
        changes.append(f"a recurrence is worth {MORE_OR_LESS[per_recurrence]} in {second}")
    if "being looped" in result.pair.moved:
        # Better is cheaper.
        price = {"better": "less", "worse": "more"}[being_looped]
        changes.append(f"being looped costs {price} in {second}")
    if len(changes) == 2:
        return " and ".join(changes)
    if changes:
        still = (
            "what being looped costs"
            if "per recurrence" in result.pair.moved
            else ("what a recurrence is worth")
        )
        return f"{changes[0]}, {still} is not distinguishable by these runs"
    if result.pair.differ:
        return (
            "the loops differ, but whether in what a recurrence is worth or in what being looped "
            "costs these runs cannot tell"
        )
    if "unknown" in (per_recurrence, being_looped):
        return "these runs cannot tell the loops apart"
    return "the loops are not distinguishable by these runs"


def _beyond_phi(result: Comparison, first: str, second: str) -> list[str]:
    """The pair and the worths, with their joint intervals."""
    lines = []
    pair = result.laws["offset"]
    if pair.differences:
        phi, offset = pair.differences["phi"], pair.differences["offset"]
        percent = f"{100 * result.level:g} %"
        lines.append(
            f"with an offset for being looped: delta phi = {phi.value:+.3f}  "
            f"{_ends(phi.simultaneous, 3)}, delta offset = {offset.value:+.4f}  "
            f"{_ends(offset.simultaneous, 4)}  ({percent} both together, joint jackknife)"
        )
    elif pair.faults:
        lines.append(f"with an offset for being looped: cannot be told: {pair.faults[0]}")
    gains = result.laws["gains"].differences
    if gains:
        worths = []
        for name, difference in gains.items():
            r = int(name.removeprefix("phi_"))
            ends = difference.ends and tuple(r**end for end in difference.ends)
            worths.append(f"r = {r}: x {r**difference.value:.2f} {_ends(ends, 2, sign='')}")
        lines.append(f"worth in {second} over {first}: {'   '.join(worths)}")
    return lines


def _against_the_plain_law(result: Comparison) -> list[str]:
    """The tests that the plain law holds in both recipes: the more cautious p of each."""
    tests = []
    for form, law in result.laws.items():
        known = [p for p in (law.p, law.p_cells_plain) if p is not None]
        if known:
            aicc = "" if law.delta_aicc is None else f" (delta AICc {law.delta_aicc:+.1f})"
            tests.append(f"p = {max(known):.2g}{aicc} against {form}")
    return [f"plain law in both recipes: {', '.join(tests)}"] if tests else []


def _by_law(result: Comparison) -> list[str]:
    """A line where the verdict on phi depends on the law chosen."""
    if result.pair is None or not result.pair.depends_on_law:
        return []
    verdicts = [
        f"{form} {verdict} ({result.laws[form].differences['phi'].value:+.3f})"
        for form, verdict in result.pair.phi_by_law.items()
        if verdict != "unknown"
    ]
    return [f"the verdict on phi depends on the law: {', '.join(verdicts)}"]


def _by_estimator(result: Comparison) -> list[str]:
    """A line where the verdict on phi depends on the estimator."""
    other = result.other_estimator
    if not other.disagrees:
        return []
    assert result.delta_phi is not None
    assert other.delta_phi is not None
    return [
        f"the verdict on phi depends on the estimator: {result.first.estimator} {result.verdict} "
        f"({result.delta_phi:+.3f}), {other.name} {other.verdict} ({other.delta_phi.value:+.3f})"
    ]


def _ends(ends: tuple[float, ...] | None, digits: int, *, sign: str = "+") -> str:
    if ends is None:
        return "[no interval]"
    low, high = (f"{end:{sign}.{digits}f}" for end in ends)
    return f"[{low}, {high}]"


def as_json(result: Comparison, first: str, *, second: str) -> dict[str, object]:
    """Plain JSON types; null where these runs cannot tell."""
    recipes = {
        name: {
            "phi": fit.phi,
            "law": law_json(fit),
            "n_runs": fit.num_runs,
            "n_cells": fit.num_cells,
            "identifiable": fit.identifiable,
            "faults": list(fit.faults),
            "warnings": list(fit.warnings),
        }
        for name, fit in ((first, result.first), (second, result.second))
    }
    known = result.low is not None and result.high is not None
    change = result.other_estimator.delta_phi
    return {
        "schema": 1,
        "first": first,
        "second": second,
        "recipes": recipes,
        "delta_phi": {
            "value": result.delta_phi,
            "ci": [result.low, result.high] if known else None,
            "ci_level": result.level,
            "jackknife_ci": list(result.jackknife) if result.jackknife else None,
            "resamples": result.resamples,
            "failed": result.failed,
            "shared_cells": result.shared_cells,
        },
        "loss": _loss_json(result.loss),
        "verdict": result.verdict,
        "other_estimator": {
            "name": result.other_estimator.name,
            "delta_phi": change and _difference_json(change),
            "verdict": result.other_estimator.verdict,
        },
        "warnings": list(result.warnings),
        "pair": asdict(result.pair) if result.pair else None,
        "laws": {form: _law_json(law) for form, law in result.laws.items()},
    }


def _loss_json(loss: LossDifference | None) -> dict[str, object] | None:
    if loss is None:
        return None
    return {
        "difference": loss.value,
        "ci": list(loss.ends) if loss.ends else None,
        "ci_level": loss.level,
        "by_recurrence": {str(r): v for r, v in loss.by_recurrence.items()},
        "by_level": loss.by_level,
        "at_equal": loss.at,
    }


def _law_json(law: LawDifference) -> dict[str, object]:
    return {
        "differences": {
            name: _difference_json(difference) for name, difference in law.differences.items()
        },
        "p_unmoved": law.p_cells,
        "plain": {"p": law.p, "p_cells": law.p_cells_plain, "delta_aicc": law.delta_aicc},
        "faults": list(law.faults),
    }


def _difference_json(difference: Difference) -> dict[str, object]:
    return {
        "value": difference.value,
        "stderr": difference.stderr,
        "ci": difference.ends,
        "simultaneous_ci": difference.simultaneous,
    }
