"""`looped sweep status`: how far a sweep is, and what `looped phi` could already say."""

import argparse
from dataclasses import asdict

from looped.commands.output import STDOUT, write_json
from looped.commands.phi import parse_fix
from looped.errors import UserError


def run(arguments: argparse.Namespace) -> int:
    """Read the sweep directory, print, write."""
    from looped.scaling.prior import PUBLISHED, read_prior
    from looped.sweeps.doubts import beyond_the_law
    from looped.sweeps.failures import failure_of
    from looped.sweeps.points import by_recipe, expected_of
    from looped.sweeps.report import expected_lines, plan_json, run_json
    from looped.sweeps.so_far import SoFar, phi_so_far
    from looped.sweeps.status import status_of
    from looped.sweeps.status_table import spent_flops, status_table
    from looped.sweeps.sweep_file import registered_runs

    fix = parse_fix(arguments.fix)
    runs = registered_runs(arguments.directory)
    prior = PUBLISHED
    if arguments.law is not None:
        prior = read_prior(arguments.law, recipe=next(iter(by_recipe(runs))))
    statuses = [status_of(run.directory) for run in runs]
    spent = [spent_flops(run) for run in runs]
    errors = [
        failure_of(run.directory) if status == "failed" else None
        for run, status in zip(runs, statuses, strict=True)
    ]
    expected = expected_of(runs, prior, fix=fix)
    now: dict[str, SoFar] = {}
    why_none: str | None = "no complete runs"
    if "complete" in statuses:
        try:
            now = phi_so_far(arguments.directory, estimator=arguments.estimator, fix=fix)
            why_none = None
        except UserError as error:
            why_none = f"looped phi refuses: {error}"
    if arguments.json != STDOUT:
        lines = status_table(runs, statuses=statuses, spent=spent)
        lines += [
            f"failed: {run.name}: {error}"
            for run, error in zip(runs, errors, strict=True)
            if error is not None
        ]
        lines += [f"phi of {name} so far: {found.in_words}" for name, found in now.items()]
        if why_none:
            lines.append(f"phi so far: {why_none}")
        lines += [f"when complete: {line}" for line in expected_lines(expected, prior.source)]
        lines += [f"warning: {line}" for line in beyond_the_law(runs, prior)]
        print("\n".join(lines))
    if arguments.json:
        entries = [
            run_json(run, status) | {"spent_flops": flops, "error": error}
            for run, status, flops, error in zip(runs, statuses, spent, errors, strict=True)
        ]
        content = plan_json(entries, expected)
        content["spent_flops"] = sum(spent)
        content["so_far"] = {name: asdict(found) for name, found in now.items()}
        content["why_none_so_far"] = why_none
        write_json(arguments.json, content)
    return 0
