"""What `plan` and `status` write as JSON, and the sentences about expected errors."""

from collections.abc import Mapping, Sequence
from typing import Any

from looped.scaling.expected_error import ExpectedDifference, ExpectedError, OffsetErrors
from looped.sweeps.plan import PlannedRun
from looped.sweeps.points import Expected


def run_json(run: PlannedRun, status: str) -> dict[str, Any]:
    """One run, plain JSON types."""
    groups = run.architecture.parameter_groups()
    return {
        "run": run.name,
        "recipe": run.recipe,
        "recurrences": run.architecture.recurrences,
        "width": run.architecture.width,
        "seed": run.seed,
        "budget_flops": run.plan.budget_flops,
        "n_once": groups.n_once,
        "n_rec": groups.n_rec,
        "flops_per_token": run.plan.flops_per_token,
        "steps": run.plan.steps,
        "tokens": run.plan.tokens,
        "train_flops": run.plan.train_flops,
        "status": status,
    }


def expected_json(expected: Expected) -> dict[str, Any]:
    """The expected standard errors: of the first recipe's phi, of each, and of differences.

    `with_offset` has those of the law with an offset for being looped. Null where the design cannot
    tell.
    """
    errors, differences = expected.errors, expected.differences
    return {
        "phi_stderr": next((error.phi_stderr for error in errors.values()), None),
        "by_recipe": {name: error.phi_stderr for name, error in errors.items()},
        "against": expected.against,
        "delta_phi_stderr": {name: error.phi_stderr for name, error in differences.items()},
        "with_offset": {
            "by_recipe": {name: _offset_json(error, "") for name, error in errors.items()},
            "delta": {name: _offset_json(error, "delta_") for name, error in differences.items()},
        },
    }


def _offset_json(error: ExpectedError | ExpectedDifference, prefix: str) -> dict[str, float] | None:
    found = error.with_offset
    if found is None:
        return None
    return {f"{prefix}phi_stderr": found.phi, f"{prefix}offset_stderr": found.offset}


def expected_lines(expected: Expected, source: str) -> list[str]:
    """The expected standard errors in words: of phi of each recipe, then of the differences."""
    lines = []
    for name, error in expected.errors.items():
        if error.phi_stderr is None:
            lines.append(f"phi of {name} cannot be told: {'; '.join(error.faults)}")
        else:
            lines.append(
                f"expected standard error of phi, {name}: {error.phi_stderr:.3g} (by {source})"
            )
            lines += _offset_lines(error.with_offset, "")
    for name, difference in expected.differences.items():
        what = f"delta phi, {name} against {expected.against}"
        if difference.phi_stderr is None:
            lines.append(f"{what}, cannot be told from the budgets that both have")
        else:
            error_in_words = f"{difference.phi_stderr:.3g} (by {source})"
            lines.append(f"expected standard error of {what}: {error_in_words}")
            lines += _offset_lines(difference.with_offset, "delta ")
    return lines


def _offset_lines(found: OffsetErrors | None, prefix: str) -> list[str]:
    """What an offset beside phi would make of it; nothing where they cannot be told apart."""
    if found is None:
        return []
    return [
        f"  with an offset for being looped: {prefix}phi {found.phi:.3g}, "
        f"{prefix}offset {found.offset:.3g}"
    ]


def plan_json(runs: Sequence[Mapping[str, Any]], expected: Expected) -> dict[str, Any]:
    """What `looped sweep plan --json` writes, from the rows of `run_json`."""
    return {
        "schema": 1,
        "runs": list(runs),
        "total_flops": sum(run["train_flops"] for run in runs),
        "expected": expected_json(expected),
    }
