"""Two recipes, law by law: how far each of a law's parameters moved, with errors drawn once.

Both recipes are fitted with the same form of the law (`loop_terms.py`). The covariance of the
differences is the joint jackknife's: each cell of either fit is left out once, shared plain ones
from both, and the parameters of the second fit less those of the first are collected.

Two intervals stand beside every difference. The one is for it alone. The simultaneous one is wider:
with m parameters each is given the level 1 - (1 - level) / m (Bonferroni), so that all of them
together hold the truth at `level`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from scipy.linalg import block_diag

from looped.scaling.fit import FitResult
from looped.scaling.fitted import Fitted
from looped.scaling.jackknife import MIN_CELLS, hotelling_p, jackknife_covariance, linear_test
from looped.scaling.joint_cells import JointCells
from looped.scaling.law import PHI, Floats
from looped.scaling.loop_terms import NESTED, Form
from looped.scaling.nested import NestedFit, fit_nested, plain_model

Ends = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One parameter of the second recipe minus that of the first.

    Attributes:
        value: the difference.
        stderr: its standard error, by the joint jackknife; null without it.
        ends: its interval at the level asked for; null likewise.
        simultaneous: its interval as one of the law's parameters together; null likewise.
    """

    value: float
    stderr: float | None
    ends: Ends | None
    simultaneous: Ends | None


@dataclass(frozen=True, kw_only=True)
class LawDifference:
    """Two recipes under one form of the law.

    Attributes:
        form: of the law.
        differences: by parameter that both fits have; empty where either cannot be told.
        p_cells: of the test that none of them moved, all together; null without their covariance.
        p: of the likelihood ratio test that the plain law holds in both recipes, runs taken as
            independent; null for the plain law itself, or where a fit has no such test.
        p_cells_plain: of the test of the same that allows for errors shared within cells, the
            joint covariance of both recipes' parameters; null likewise.
        delta_aicc: AICc of the plain law minus that of this one, of both recipes together; above 0
            speaks for this one. Null likewise.
        faults: why a fit cannot be told, in words; empty when both can.
    """

    form: Form
    differences: dict[str, Difference]
    faults: tuple[str, ...]
    p_cells: float | None = None
    p: float | None = None
    p_cells_plain: float | None = None
    delta_aicc: float | None = None


def law_differences(
    fits: Sequence[FitResult], cells: JointCells, *, level: float
) -> dict[Form, LawDifference]:
    """The plain law and the three beside it, in that order.

    Args:
        fits: of the two recipes, plain.
        cells: of their runs.
        level: of the intervals.
    """
    laws: dict[Form, LawDifference] = {"plain": plain_difference(fits, cells, level=level)}
    for form in NESTED:
        laws[form] = _nested(fits, cells, form, level=level)
    return laws


def plain_difference(
    fits: Sequence[FitResult], cells: JointCells, *, level: float
) -> LawDifference:
    """The plain law alone; arguments as of `law_differences`."""
    told = [Fitted.of(fit) for fit in fits if fit.phi is not None]
    plain = LawDifference(
        form="plain",
        differences={},
        faults=tuple(fault for fit in fits for fault in fit.faults),
    )
    if len(told) < len(fits):
        return plain
    moved = _Moved.of(told, cells)
    return replace(plain, differences=moved.differences(level), p_cells=moved.p_cells())


def _nested(
    fits: Sequence[FitResult], cells: JointCells, form: Form, *, level: float
) -> LawDifference:
    laws = [fit_nested(fit, form, level=level) for fit in fits if fit.design_tells_phi]
    difference = LawDifference(
        form=form, differences={}, faults=tuple(fault for law in laws for fault in law.faults)
    )
    fitted = [law.fitted for law in laws if law.fitted is not None and law.identifiable]
    if len(fitted) < len(fits):
        return difference
    moved = _Moved.of(fitted, cells)
    return replace(
        difference,
        differences=moved.differences(level),
        p_cells=moved.p_cells(),
        p=_joint_likelihood_ratio(fits, laws),
        p_cells_plain=moved.p_cells_plain(form),
        delta_aicc=_joint_aicc(laws),
    )


@dataclass(frozen=True, kw_only=True)
class _Moved:
    """Parameters of both recipes, and their joint covariance; null where a cell alone tells one."""

    names: tuple[tuple[str, ...], ...]
    values: tuple[Floats, ...]
    covariance: Floats | None
    num_cells: int

    @classmethod
    def of(cls, fitted: Sequence[Fitted], cells: JointCells) -> "_Moved":
        covariance = None
        if len(cells) >= MIN_CELLS:
            without = [
                each.loop_values(weights)
                for each, weights in zip(fitted, cells.without_each(), strict=True)
            ]
            if all(told.all() for _, told in without):
                covariance = jackknife_covariance(np.hstack([values for values, _ in without]))
        return cls(
            names=tuple(each.design.terms.names for each in fitted),
            values=tuple(each.theta[PHI:] for each in fitted),
            covariance=covariance,
            num_cells=len(cells),
        )

    @property
    def common(self) -> list[str]:
        """Parameters that both recipes have."""
        return [name for name in self.names[1] if name in self.names[0]]

    def _contrast(self) -> Floats:
        """Differences = contrast @ all values; shape (common, q1 + q2)."""
        first, second = self.names
        rows = np.zeros((len(self.common), len(first) + len(second)))
        for row, name in zip(rows, self.common, strict=True):
            row[first.index(name)] = -1.0
            row[len(first) + second.index(name)] = 1.0
        return rows

    def differences(self, level: float) -> dict[str, Difference]:
        contrast = self._contrast()
        values = contrast @ np.concatenate(self.values)
        if self.covariance is None or not self.common:
            return {
                name: Difference(value=float(value), stderr=None, ends=None, simultaneous=None)
                for name, value in zip(self.common, values, strict=True)
            }
        errors = np.sqrt(np.diag(contrast @ self.covariance @ contrast.T))
        freedom = self.num_cells - 1
        own = float(stats.t.ppf(0.5 + level / 2, freedom))
        together = float(stats.t.ppf(1 - (1 - level) / (2 * len(values)), freedom))
        return {
            name: Difference(
                value=float(value),
                stderr=float(error),
                ends=(float(value - own * error), float(value + own * error)),
                simultaneous=(float(value - together * error), float(value + together * error)),
            )
            for name, value, error in zip(self.common, values, errors, strict=True)
        }

    def p_cells(self) -> float | None:
        """P of the test that nothing moved."""
        if self.covariance is None or not self.common:
            return None
        contrast = self._contrast()
        covariance = contrast @ self.covariance @ contrast.T
        return hotelling_p(contrast @ np.concatenate(self.values), covariance, cells=self.num_cells)

    def p_cells_plain(self, form: Form) -> float | None:
        """P of the test that the plain law holds in both recipes."""
        models = [plain_model(form, len(values)) for values in self.values]
        model = block_diag(*models)
        if self.covariance is None or model.shape[1] == len(model):
            return None
        values = np.concatenate(self.values)
        return linear_test(values, self.covariance, model=model, cells=self.num_cells).p


def _joint_likelihood_ratio(fits: Sequence[FitResult], laws: Sequence[NestedFit]) -> float | None:
    """The improvements of both recipes together; each has its own dispersion taken off."""
    gained = [law.num_free - fit.num_free for fit, law in zip(fits, laws, strict=True)]
    if not sum(gained):
        return None
    improvement = sum((law.statistic or 0.0) * m for law, m in zip(laws, gained, strict=True))
    freedom = sum(fit.num_runs - law.num_free for fit, law in zip(fits, laws, strict=True))
    return float(stats.f.sf(improvement / sum(gained), sum(gained), freedom))


def _joint_aicc(laws: Sequence[NestedFit]) -> float | None:
    known = [law.delta_aicc for law in laws if law.delta_aicc is not None]
    return sum(known) if len(known) == len(laws) else None
