"""What further runs would tell: expected errors under the law with an offset for being looped.

    looped phi results/cpu --estimator least_squares --json law.json
    python results/settle.py law.json                         the grid of the measurement
    python results/settle.py law.json configs/sweeps/cpu-more.yaml        and with more runs

`looped sweep plan` expects errors under the plain law. Under the offset law (docs/beyond-phi.md)
phi and the offset must be told apart, which a third recurrence count above 1 does best.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from looped.scaling.expected_error import derivatives
from looped.scaling.law import PHI
from looped.scaling.prior import Prior, read_prior
from looped.sweeps.points import by_recipe, points
from looped.sweeps.together import read_together

MEASURED = [Path(f"configs/sweeps/{name}.yaml") for name in ("cpu", "cpu-seeds")]
OFFSET = PHI + 1


def weights(runs: pd.DataFrame, prior: Prior) -> pd.DataFrame:
    """How far phi and the offset move with the noise of each run: rows of the pseudo-inverse."""
    loss = prior.law.loss(
        runs["recurrences"], runs["n_once"], n_rec=runs["n_rec"], tokens=runs["tokens"]
    )
    of_offset = loss * (runs["recurrences"] > 1)
    information = np.column_stack([derivatives(runs, prior), of_offset]) / prior.noise
    scale = np.linalg.norm(information, axis=0)
    solution = np.linalg.pinv(information / scale) / scale[:, np.newaxis]
    return pd.DataFrame(solution[[PHI, OFFSET]].T, index=runs["run"], columns=["phi", "offset"])


def main() -> None:
    """Print the expected standard errors of the recipes and of their differences."""
    law, *more = map(Path, sys.argv[1:])
    runs = read_together([*MEASURED, *more]).runs
    prior = read_prior(law, recipe="baseline")
    found = {name: weights(points(own), prior) for name, own in by_recipe(runs).items()}
    print(f"{len(runs)} runs, {sum(run.plan.train_flops for run in runs):.3g} FLOPs")
    for name, own in found.items():
        phi, offset = np.linalg.norm(own, axis=0)
        line = f"{name}: phi {phi:.3f}, offset {offset:.4f}"
        if name != "baseline":
            phi, offset = np.linalg.norm(own.sub(found["baseline"], fill_value=0.0), axis=0)
            line += f"; against baseline: delta phi {phi:.3f}, delta offset {offset:.4f}"
        print(line)


if __name__ == "__main__":
    main()
