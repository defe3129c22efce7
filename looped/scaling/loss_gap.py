"""The loss gap between looped models and plain ones, and what each part of the offset law explains.

A looped run is compared with the plain model of the same effective depth and width on the same
tokens, N_once + r N_rec parameters, whose loss the law gives. Holding the other numbers of the
offset law (`loop_terms.py`), the gap is, run by run and exactly,

    L - L_hat(phi = 1, no offset)
      = [L_hat(phi, no offset) - L_hat(1, no offset)]      a recurrence is worth less than a block
      + [L_hat(phi, offset) - L_hat(phi, no offset)]       being looped at all
      + [L - L_hat(phi, offset)]                           the rest
"""

from dataclasses import dataclass

import numpy as np

from looped.scaling.law import PHI
from looped.scaling.nested import NestedFit

PARTS = ("per_recurrence", "being_looped", "rest")
"""The names of the parts; each is an attribute of `GapParts`."""


@dataclass(frozen=True, kw_only=True)
class GapParts:
    """The gap of one recurrence count, means over its runs in nats; the parts add up to it.

    Attributes:
        num_runs: of this recurrence count.
        gap: loss above that of the plain model of the same effective depth.
        per_recurrence: what sharing the block between recurrences explains: phi below 1.
        being_looped: what the offset explains.
        rest: what the law leaves.
    """

    num_runs: int
    gap: float
    per_recurrence: float
    being_looped: float
    rest: float

    @property
    def shares(self) -> dict[str, float] | None:
        """Each part over the gap: 1 together, below 0 or above 1 where parts oppose each other.

        Null where looped runs are no worse than the plain model.
        """
        if self.gap <= 0:
            return None
        return {name: getattr(self, name) / self.gap for name in PARTS}


def loss_gap(offset: NestedFit) -> dict[int, GapParts]:
    """The parts for every r > 1, ascending; empty where the runs cannot tell the offset law."""
    if not offset.identifiable or offset.fitted is None:
        return {}
    fitted = offset.fitted
    unlooped, plain = fitted.theta.copy(), fitted.theta.copy()
    unlooped[PHI + 1] = 0.0
    plain[PHI:] = [1.0, 0.0]
    thetas = np.stack([plain, unlooped, fitted.theta])
    full, shared, whole = np.exp(fitted.design.log_prediction(thetas))
    loss = np.exp(fitted.design.log_loss)
    counts = np.rint(np.exp(fitted.design.terms.in_gain[:, 0])).astype(int)
    parts = {}
    for r in sorted(set(counts[counts > 1].tolist())):
        own = counts == r
        parts[r] = GapParts(
            num_runs=int(own.sum()),
            gap=float((loss - full)[own].mean()),
            per_recurrence=float((shared - full)[own].mean()),
            being_looped=float((whole - shared)[own].mean()),
            rest=float((loss - whole)[own].mean()),
        )
    return parts
