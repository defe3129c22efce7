"""The standard error of phi that a set of runs will give, before any of them is trained.

Least squares on the loss L with independent noise of sigma nats moves the parameters by

    W e,    W = pseudo-inverse of J / sigma,

J the derivatives of L by the free parameters and e the noise of each run in sigma; the standard
error of a parameter is the length of its row of W. The difference of two phis is a sum over the
runs of both, in which a common run enters once.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from looped.scaling.identifiability import HELD_BETA, design_faults, form_faults
from looped.scaling.law import ALPHA, BETA, LOG_E, PHI, Design, Floats
from looped.scaling.levels import number_of_levels
from looped.scaling.loop_terms import Form, LoopTerms
from looped.scaling.prior import Prior

COLUMNS = {"E": LOG_E, "alpha": ALPHA, "beta": BETA}
"""Columns of what can be held beside phi."""


@dataclass(frozen=True, kw_only=True)
class OffsetErrors:
    """Standard errors under the law with an offset for being looped, with no offset expected.

    Attributes:
        phi: of phi, which the offset makes less certain.
        offset: of the offset in log L.
    """

    phi: float
    offset: float


@dataclass(frozen=True, kw_only=True)
class ExpectedError:
    """What a design can be expected to tell about phi.

    Attributes:
        phi_stderr: expected standard error of phi; null when the design cannot tell phi.
        with_offset: of phi and the offset; null when the design cannot tell them apart.
        faults: why it cannot tell phi, in words; empty when it can.
    """

    phi_stderr: float | None
    with_offset: OffsetErrors | None
    faults: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ExpectedDifference:
    """What two designs can be expected to tell about the change of phi between them.

    Attributes:
        phi_stderr: expected standard error of the one phi minus the other; null when either cannot
            tell phi.
        with_offset: of the change of phi and of that of the offset; null likewise.
    """

    phi_stderr: float | None
    with_offset: OffsetErrors | None


def expected_error(
    runs: pd.DataFrame, prior: Prior, *, fix: Mapping[str, float] | None = None
) -> ExpectedError:
    """The standard error of phi expected from fitting these runs.

    Args:
        runs: a table with `run, recurrences, n_once, n_rec, tokens` and, when known, `level`.
        prior: the law at which derivatives are taken, and the noise.
        fix: parameters that the fit will hold, as of `fit_law`; that they are held counts here, not
            at which value.
    """
    (phi_stderr,) = _errors(runs, prior=prior, fix=fix, form="plain") or (None,)
    return ExpectedError(
        phi_stderr=phi_stderr,
        with_offset=_with_offset(runs, prior=prior, fix=fix),
        faults=tuple(_faults(runs, "plain", held=_held(runs, fix))),
    )


def expected_difference(
    first: pd.DataFrame,
    second: pd.DataFrame,
    *,
    prior: Prior,
    fix: Mapping[str, float] | None = None,
) -> ExpectedDifference:
    """The standard error expected of the phi of one recipe minus that of another.

    Runs of both, which have one name, err once: a plain run moves both phis alike.

    Args:
        first: runs of one recipe as of `expected_error`.
        second: those of the other.
        prior: as of `expected_error`, for both.
        fix: likewise.
    """
    (phi_stderr,) = _errors(first, second, prior=prior, fix=fix, form="plain") or (None,)
    return ExpectedDifference(
        phi_stderr=phi_stderr,
        with_offset=_with_offset(first, second, prior=prior, fix=fix),
    )


def _with_offset(
    *tables: pd.DataFrame, prior: Prior, fix: Mapping[str, float] | None
) -> OffsetErrors | None:
    found = _errors(*tables, prior=prior, fix=fix, form="offset")
    if found is None:
        return None
    phi, offset = found
    return OffsetErrors(phi=phi, offset=offset)


def _errors(
    *tables: pd.DataFrame, prior: Prior, fix: Mapping[str, float] | None, form: Form
) -> list[float] | None:
    """Of the loop's parameters (`loop_terms.py`): those of one design, or of two their difference.

    Null where a design cannot tell them.
    """
    held = [_held(runs, fix) for runs in tables]
    if any(_faults(runs, form, held=own) for runs, own in zip(tables, held, strict=True)):
        return None
    first, *second = (
        loop_weights(runs, prior, held=own, form=form)
        for runs, own in zip(tables, held, strict=True)
    )
    moved = second[0].sub(first, fill_value=0.0) if second else first
    return [float(error) for error in np.linalg.norm(moved, axis=0)]


def _faults(runs: pd.DataFrame, form: Form, *, held: Mapping[str, float]) -> list[str]:
    """Why these runs cannot tell the loop's parameters, whatever their losses."""
    if runs.empty:
        return ["no runs"]
    if "phi" in held:
        return [f"it is held at {held['phi']:g}"]
    num_free = PHI - len(held) + len(LoopTerms.of(np.ones(1), form).names)
    return design_faults(runs, num_free=num_free, held=held) + form_faults(runs, form)


def loop_weights(
    runs: pd.DataFrame, prior: Prior, *, held: Mapping[str, float], form: Form
) -> pd.DataFrame:
    """How far the loop's parameters move when the loss of a run does by its noise: their rows of W.

    Returns:
        One row per run, by name, and one column per parameter of the form.
    """
    information = derivatives(runs, prior, form=form) / prior.noise
    taken = [COLUMNS[name] for name in held]
    free = np.delete(information, taken, axis=1)
    scale = np.linalg.norm(free, axis=0)
    pseudo_inverse = np.linalg.pinv(free / scale) / scale[:, np.newaxis]
    return pd.DataFrame(pseudo_inverse[PHI - len(held) :].T, index=runs["run"])


def derivatives(runs: pd.DataFrame, prior: Prior, *, form: Form = "plain") -> Floats:
    """J: derivatives of each run's loss in nats by theta (law.py); shape (n, p).

    Taken at the prior's law, to which a form adds nothing.
    """
    loss = prior.law.loss(
        runs["recurrences"], runs["n_once"], n_rec=runs["n_rec"], tokens=runs["tokens"]
    )
    design = Design.of_runs(runs.assign(loss=loss), form=form)
    theta = np.zeros(len(design.names))
    theta[: PHI + 1] = design.to_theta(prior.law)
    _, of_log_loss = design.log_prediction_and_jacobian(theta)
    return np.asarray(of_log_loss * loss[:, np.newaxis])


def _held(runs: pd.DataFrame, fix: Mapping[str, float] | None) -> dict[str, float]:
    held = dict(fix or {})
    if "beta" not in held and number_of_levels(runs["tokens"]) == 2:
        held["beta"] = HELD_BETA  # as `fit_law` does
    return held
