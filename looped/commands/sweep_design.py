"""`looped sweep design`: the grid that tells phi best for a total budget."""

import argparse

from looped.commands.output import STDOUT, write_json
from looped.errors import UserError


def run(arguments: argparse.Namespace) -> int:
    """Design, print the grid as YAML and what further runs would buy."""
    from looped.scaling.prior import PUBLISHED, read_prior
    from looped.sweeps.base import read_base
    from looped.sweeps.data import data_of
    from looped.sweeps.design import as_yaml, design_grid
    from looped.sweeps.doubts import beyond_the_law
    from looped.sweeps.grid import read_grid
    from looped.sweeps.report import run_json

    if not arguments.like.exists():
        raise UserError(f"--like {arguments.like} does not exist: name a grid YAML of your setting")
    like = read_grid(arguments.like)
    base = read_base(like.base)
    data = data_of(base)
    prior = PUBLISHED
    if arguments.law is not None:
        prior = read_prior(arguments.law, recipe=next(iter(like.recipes)))
    proposal = design_grid(
        like,
        base,
        budget=arguments.budget,
        num_runs=arguments.runs,
        prior=prior,
        budgets=arguments.budgets,
        widths=arguments.widths,
        train_rows=None if data is None else data.train.rows,
        at_least=arguments.at_least,
        further=arguments.further,
    )
    text = as_yaml(proposal, like)
    notes = [
        f"{len(proposal.runs)} of {proposal.num_candidates} candidate runs, "
        f"{proposal.train_flops:.3g} FLOPs",
        f"expected standard error of phi: {proposal.phi_stderr:.3g} (by {prior.source})",
        *(f"warning: {line}" for line in beyond_the_law(proposal.runs, prior)),
    ]
    before = proposal.phi_stderr
    for more in proposal.further:
        gain = 1 - more.phi_stderr / before
        notes.append(
            f"one more, {more.run.name}: {more.phi_stderr:.3g} (-{gain:.1%}) for "
            f"{more.run.plan.train_flops:.3g} FLOPs"
        )
        before = more.phi_stderr
    if arguments.json != STDOUT:
        print("\n".join(f"# {note}" for note in notes))
        print(text, end="")
    if arguments.json:
        write_json(
            arguments.json,
            {
                "schema": 1,
                "grid": text,
                "runs": [run_json(run, "planned") for run in proposal.runs],
                "total_flops": proposal.train_flops,
                "expected": {"phi_stderr": proposal.phi_stderr},
                "further": [
                    run_json(more.run, "planned") | {"phi_stderr": more.phi_stderr}
                    for more in proposal.further
                ],
            },
        )
    return 0
