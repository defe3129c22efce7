"""What being looped does to the law: the plain form and three that nest it.

    plain        N_eff = N_once + r^phi N_rec
    gains        N_eff = N_once + g_r N_rec        a free g_r = r^phi_r for every r >= 2
    offset       plain, and log L_hat + offset     for r > 1
    gain_offset  N_eff = exp(log_factor) (N_once + r^phi N_rec)    for r > 1

All are linear in their parameters x (phi, phi_r, offset, log_factor), at three places:

    N_eff = exp(H x) (N_once + exp(G x) N_rec),    log L_hat = log(E + ...) + K x

so one set of formulas, derivatives included, serves the four (`law.py`).
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Form = Literal["plain", "gains", "offset", "gain_offset"]
NESTED: tuple[Form, ...] = get_args(Form)[1:]
"""The forms that hold the plain one as a special case."""

EXPONENT_BOX = (-2.0, 3.0)
OFFSET_BOX = (-0.5, 0.5)
FACTOR_BOX = (-3.0, 3.0)
"""Of phi and phi_r, of the offset in log L, and of the logarithm of the factor on N_eff. No fit
that can be trusted touches them."""


@dataclass(frozen=True, kw_only=True)
class LoopTerms:
    """One form of the law on n runs: q parameters and the places at which they act.

    Attributes:
        form: its name.
        names: of the parameters x; q of them.
        in_gain: G, what r^phi is made of; shape (n, q).
        in_size: H, on the logarithm of the effective size; shape (n, q), null for all zeros.
        in_loss: K, on the logarithm of the loss; shape (n, q), null for all zeros.
        low: smallest x that is searched; shape (q,).
        high: largest; shape (q,).
    """

    form: Form
    names: tuple[str, ...]
    in_gain: NDArray[np.float64]
    in_size: NDArray[np.float64] | None
    in_loss: NDArray[np.float64] | None
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def of(cls, recurrences: NDArray[np.float64], form: Form) -> "LoopTerms":
        """The terms of a form.

        Args:
            recurrences: r of each run; shape (n,).
            form: which of the four.
        """
        log_r = np.log(recurrences)[:, np.newaxis]
        looped = (log_r > 0).astype(float)
        none = np.zeros_like(log_r)
        if form == "gains":
            counts = sorted({int(r) for r in recurrences if r > 1})
            own = recurrences[:, np.newaxis] == np.array(counts, dtype=float)
            names = tuple(f"phi_{r}" for r in counts)
            return cls._boxed(form, names, [EXPONENT_BOX] * len(counts), in_gain=log_r * own)
        if form == "plain":
            return cls._boxed(form, ("phi",), [EXPONENT_BOX], in_gain=log_r)
        gain = np.hstack([log_r, none])
        extra = np.hstack([none, looped])
        if form == "offset":
            boxes = [EXPONENT_BOX, OFFSET_BOX]
            return cls._boxed(form, ("phi", "offset"), boxes, in_gain=gain, in_loss=extra)
        boxes = [EXPONENT_BOX, FACTOR_BOX]
        return cls._boxed(form, ("phi", "log_factor"), boxes, in_gain=gain, in_size=extra)

    @classmethod
    def _boxed(
        cls,
        form: Form,
        names: tuple[str, ...],
        boxes: list[tuple[float, float]],
        *,
        in_gain: NDArray[np.float64],
        in_size: NDArray[np.float64] | None = None,
        in_loss: NDArray[np.float64] | None = None,
    ) -> "LoopTerms":
        low, high = np.array(boxes).reshape(-1, 2).T
        return cls(
            form=form,
            names=names,
            in_gain=in_gain,
            in_size=in_size,
            in_loss=in_loss,
            low=low,
            high=high,
        )

    @property
    def touched(self) -> NDArray[np.bool_]:
        """Which runs each parameter acts on; shape (n, q)."""
        places = [self.in_gain, self.in_size, self.in_loss]
        acts = [place != 0 for place in places if place is not None]
        return np.asarray(np.logical_or.reduce(acts))
