"""The standard error of phi that a set of runs will give, before any of them is trained.

Least squares on the loss L with independent noise of sigma nats has the information matrix
J'J / sigma^2, J the derivatives of L by the parameters. The error of phi is what its column adds to
the span of the others:

    stderr(phi) = sigma / |j_phi - projection of j_phi onto the other columns|

The difference of two phis is a sum over the runs of both, in which a common run enters once.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from looped.scaling.identifiability import HELD_BETA, design_faults
from looped.scaling.law import ALPHA, BETA, LOG_E, PHI, Design, Floats
from looped.scaling.levels import number_of_levels
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
    held = _held(runs, fix)
    if "phi" in held:
        return ExpectedError(phi_stderr=None, faults=(f"it is held at {held['phi']:g}",))
    num_free = PHI + 1 - len(held)
    faults = tuple(design_faults(runs, num_free=num_free, held=held))
    if faults:
        return ExpectedError(phi_stderr=None, faults=faults)
    weights = phi_weights(runs, prior, held=held)
    return ExpectedError(phi_stderr=float(np.linalg.norm(weights)), faults=())


def expected_difference(
    first: pd.DataFrame,
    second: pd.DataFrame,
    *,
    prior: Prior,
    fix: Mapping[str, float] | None = None,
) -> float | None:
    """The standard error expected of the phi of one recipe minus that of another.

    Runs of both, which have one name, err once: a plain run moves both phis alike.

    Args:
        first: runs of one recipe as of `expected_error`, with `run`.
        second: those of the other.
        prior: as of `expected_error`, for both.
        fix: likewise.

    Returns:
        Null where either cannot tell phi.
    """
    tables = (first, second)
    if any(expected_error(runs, prior, fix=fix).phi_stderr is None for runs in tables):
        return None
    weights = [
        pd.Series(phi_weights(runs, prior, held=_held(runs, fix)), index=runs["run"])
        for runs in tables
    ]
    return float(np.linalg.norm(weights[1].sub(weights[0], fill_value=0.0)))


def phi_weights(runs: pd.DataFrame, prior: Prior, *, held: Mapping[str, float]) -> Floats:
    """How far phi moves when the loss of a run does by its noise; shape (n,).

    Phi's column of J / sigma orthogonal to the other free ones, over its square length: the row of
    the least-squares solution that gives phi.
    """
    information = derivatives(runs, prior) / prior.noise
    taken = {COLUMNS[name] for name in held}
    others = [column for column in range(PHI) if column not in taken]
    unit = information[:, others] / np.linalg.norm(information[:, others], axis=0)
    column = information[:, PHI]
    solution, *_ = np.linalg.lstsq(unit, column, rcond=None)
    own = column - unit @ solution
    return np.asarray(own / (own @ own))


def derivatives(runs: pd.DataFrame, prior: Prior) -> Floats:
    """J: derivatives of each run's loss in nats by theta (law.py); shape (n, 6)."""
    loss = prior.law.loss(
        runs["recurrences"], runs["n_once"], n_rec=runs["n_rec"], tokens=runs["tokens"]
    )
    design = Design.of_runs(runs.assign(loss=loss))
    _, of_log_loss = design.log_prediction_and_jacobian(design.to_theta(prior.law))
    return np.asarray(of_log_loss * loss[:, np.newaxis])


def _held(runs: pd.DataFrame, fix: Mapping[str, float] | None) -> dict[str, float]:
    held = dict(fix or {})
    if "beta" not in held and number_of_levels(runs["tokens"]) == 2:
        held["beta"] = HELD_BETA  # as `fit_law` does
    return held
