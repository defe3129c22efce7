"""What `plan` and `status` write as JSON, and the sentences about expected errors."""

from collections.abc import Mapping, Sequence
from typing import Any

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
    """The expected standard error of phi: that of the first recipe, of each, and of differences.

    Null where the design cannot tell phi.
    """
    errors = {name: error.phi_stderr for name, error in expected.errors.items()}
    return {
        "phi_stderr": next(iter(errors.values()), None),
        "by_recipe": errors,
        "against": expected.against,
        "delta_phi_stderr": expected.differences,
    }


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
    for name, difference in expected.differences.items():
        what = f"delta phi, {name} against {expected.against}"
        if difference is None:
            lines.append(f"{what}, cannot be told from the budgets that both have")
        else:
            lines.append(f"expected standard error of {what}: {difference:.3g} (by {source})")
    return lines


def plan_json(runs: Sequence[Mapping[str, Any]], expected: Expected) -> dict[str, Any]:
    """What `looped sweep plan --json` writes, from the rows of `run_json`."""
    return {
        "schema": 1,
        "runs": list(runs),
        "total_flops": sum(run["train_flops"] for run in runs),
        "expected": expected_json(expected),
    }
