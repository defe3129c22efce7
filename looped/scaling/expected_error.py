"""The standard error of phi that a set of runs will give, before any of them is trained.

Least squares on the loss L with independent noise of sigma nats has the information matrix
J'J / sigma^2, J the derivatives of L by the parameters. The error of phi is what its column adds to
the span of the others:

    stderr(phi) = sigma / |j_phi - projection of j_phi onto the other columns|
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from looped.scaling.identifiability import HELD_BETA, design_faults, levels
from looped.scaling.law import ALPHA, BETA, LOG_E, PHI, Design, Floats
from looped.scaling.prior import Prior

COLUMNS = {"E": LOG_E, "alpha": ALPHA, "beta": BETA}
"""Columns of what can be held beside phi."""


@dataclass(frozen=True, kw_only=True)
class ExpectedError:
    """What a design can be expected to tell about phi.

    Attributes:
        phi_stderr: expected standard error of phi; null when the design cannot tell phi.
        faults: why not, in words; empty when it can.
    """

    phi_stderr: float | None
    faults: tuple[str, ...]


def expected_error(
    runs: pd.DataFrame, prior: Prior, *, fix: Mapping[str, float] | None = None
) -> ExpectedError:
    """The standard error of phi expected from fitting these runs.

    Args:
        runs: a table with `recurrences, n_once, n_rec, tokens` and, when known, `level`.
        prior: the law at which derivatives are taken, and the noise.
        fix: parameters that the fit will hold, as of `fit_law`; that they are held counts here, not
            at which value.
    """
    if runs.empty:
        return ExpectedError(phi_stderr=None, faults=("no runs",))
    held = dict(fix or {})
    if "phi" in held:
        return ExpectedError(phi_stderr=None, faults=(f"it is held at {held['phi']:g}",))
    if "beta" not in held and levels(runs["tokens"]) == 2:
        held["beta"] = HELD_BETA  # as `fit_law` does
    num_free = PHI + 1 - len(held)
    faults = tuple(design_faults(runs, num_free=num_free, held=held))
    if faults:
        return ExpectedError(phi_stderr=None, faults=faults)
    information = derivatives(runs, prior) / prior.noise
    taken = {COLUMNS[name] for name in held}
    others = [column for column in range(PHI) if column not in taken]
    return ExpectedError(phi_stderr=phi_stderr(information, others=others), faults=())


def derivatives(runs: pd.DataFrame, prior: Prior) -> Floats:
    """J: derivatives of each run's loss in nats by theta (law.py); shape (n, 6)."""
    loss = prior.law.loss(
        runs["recurrences"], runs["n_once"], n_rec=runs["n_rec"], tokens=runs["tokens"]
    )
    design = Design.of_runs(runs.assign(loss=loss))
    _, of_log_loss = design.log_prediction_and_jacobian(design.to_theta(prior.law))
    return np.asarray(of_log_loss * loss[:, np.newaxis])


def phi_stderr(information: Floats, *, others: list[int]) -> float:
    """1 / the length of phi's column orthogonal to the other free ones.

    Args:
        information: J / sigma; shape (n, 6).
        others: columns of the other free parameters.
    """
    unit = information[:, others] / np.linalg.norm(information[:, others], axis=0)
    column = information[:, PHI]
    solution, *_ = np.linalg.lstsq(unit, column, rcond=None)
    return float(1 / np.linalg.norm(column - unit @ solution))
