"""What a looped size is worth: the plain model of equal loss, the plain model of equal cost.

    equal loss:  N_plain = N_once + r^phi N_rec             (the law, at equal tokens)
    equal cost:  F_plain(N_plain) = F_looped(N)             (training FLOPs per token, DESIGN 3)

and the best use of a budget C at a recurrence count: the N* with the lowest L(N, C / F(N)).

Widths are continuous here. Parameters and FLOPs of a layout are exact quadratics in the width, so
three widths of `looped.architecture` determine them and no formula is repeated.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from looped.architecture import Architecture, Convention
from looped.errors import UserError
from looped.scaling.law import Floats, Law

WIDTHS = (256, 1024, 4096)
"""Any three widths determine a quadratic."""

WIDTH_RANGE = (2.0, 1e6)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A family of models that differ in width only.

    Args:
        prelude_layers: unique blocks before the loop.
        looped_layers: effective layers of the loop, recurrences x recurrent blocks.
        coda_layers: unique blocks after the loop.
        recurrences: r; 1 is the plain model of the same effective depth.
        truncation_depth: k, gradients flow through the last k recurrences only; null = all.
        vocab_size: V, of the head's share in the FLOPs.
        seq_len: T, of attention's share in the FLOPs.
        convention: of counting FLOPs.

    Raises:
        UserError: a looped depth that r does not divide, or values that make no model.
    """

    prelude_layers: int = 2
    looped_layers: int = 16
    coda_layers: int = 2
    recurrences: int = 1
    truncation_depth: int | None = None
    vocab_size: int = 32_001
    seq_len: int = 2_048
    convention: Convention = "paper"

    def __post_init__(self) -> None:
        if self.recurrences < 1 or self.looped_layers % self.recurrences:
            raise UserError(
                f"{self.looped_layers} looped layers cannot be {self.recurrences} passes through "
                "one block: choose recurrences that divide them"
            )
        self._at(WIDTHS[0])

    def plain(self) -> "Layout":
        """The plain model of the same effective depth."""
        return replace(self, recurrences=1, truncation_depth=None)

    def n_once(self, width: float) -> float:
        """N_once at a width."""
        return self._quadratic([self._at(w).parameter_groups().n_once for w in WIDTHS], width)

    def n_rec(self, width: float) -> float:
        """N_rec at a width."""
        return self._quadratic([self._at(w).parameter_groups().n_rec for w in WIDTHS], width)

    def n_total(self, width: float) -> float:
        """N_once + N_rec at a width."""
        return self.n_once(width) + self.n_rec(width)

    def flops_per_token(self, width: float) -> float:
        """Training FLOPs per token at a width."""
        return self._quadratic(
            [self._at(w).flops_per_token(self.convention) for w in WIDTHS], width
        )

    def width_of_size(self, n_total: float) -> float:
        """The width at which N_once + N_rec is `n_total`."""
        return self._solve(self.n_total, n_total, "parameters")

    def width_of_flops(self, flops_per_token: float) -> float:
        """The width at which a token costs `flops_per_token`."""
        return self._solve(self.flops_per_token, flops_per_token, "FLOPs per token")

    def _at(self, width: int) -> Architecture:
        return Architecture(
            width=width,
            num_heads=1,
            prelude_layers=self.prelude_layers,
            recurrent_layers=self.looped_layers // self.recurrences,
            coda_layers=self.coda_layers,
            recurrences=self.recurrences,
            truncation_depth=self.truncation_depth,
            vocab_size=self.vocab_size,
            seq_len=self.seq_len,
        )

    @staticmethod
    def _quadratic(values: list[int], width: float) -> float:
        scaled = np.array(WIDTHS) / WIDTHS[1]
        coefficients: Floats = np.linalg.solve(np.vander(scaled, 3), np.array(values, dtype=float))
        return float(np.polyval(coefficients, width / WIDTHS[1]))

    @staticmethod
    def _solve(function: Callable[[float], float], value: float, what: str) -> float:
        low, high = WIDTH_RANGE
        if not function(low) <= value <= function(high):
            raise UserError(f"no model of this layout has {value:.3g} {what}")
        return float(brentq(lambda width: function(width) - value, low, high, xtol=1e-9))


@dataclass(frozen=True, kw_only=True)
class Equivalent:
    """A looped size and the plain sizes that match it, all at equal tokens.

    Attributes:
        recurrences: r.
        phi: with which the loop was valued.
        width: of the looped model, in general not a whole number.
        n_once: N_once of the looped model.
        n_rec: N_rec of the looped model.
        equal_loss: N_once + r^phi N_rec: parameters of the plain model of equal loss.
        equal_cost: parameters of the plain model of equal training FLOPs per token.
        flops_per_token: of the looped model, and of the plain model of equal cost.
        equal_loss_flops_per_token: of the plain model of equal loss.
    """

    recurrences: int
    phi: float
    width: float
    n_once: float
    n_rec: float
    equal_loss: float
    equal_cost: float
    flops_per_token: float
    equal_loss_flops_per_token: float


def equivalent(layout: Layout, n_total: float, *, phi: float) -> Equivalent:
    """Value a looped model of `n_total` = N_once + N_rec parameters.

    Raises:
        UserError: no model of the layout has that size.
    """
    plain = layout.plain()
    width = layout.width_of_size(n_total)
    n_once, n_rec = layout.n_once(width), layout.n_rec(width)
    equal_loss = n_once + layout.recurrences**phi * n_rec
    cost = layout.flops_per_token(width)
    return Equivalent(
        recurrences=layout.recurrences,
        phi=phi,
        width=width,
        n_once=n_once,
        n_rec=n_rec,
        equal_loss=equal_loss,
        equal_cost=plain.n_total(plain.width_of_flops(cost)),
        flops_per_token=cost,
        equal_loss_flops_per_token=plain.flops_per_token(plain.width_of_size(equal_loss)),
    )


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """The best use of a budget at one recurrence count, by the law.

    Attributes:
        recurrences: r.
        budget: C, training FLOPs.
        width: of the best model, in general not a whole number.
        n_total: N*, its unique parameters N_once + N_rec.
        tokens: D* = C / F(N*).
        loss: L*, in nats per token.
    """

    recurrences: int
    budget: float
    width: float
    n_total: float
    tokens: float
    loss: float


def allocate(law: Law, layout: Layout, *, budget: float) -> Allocation:
    """Minimise the law's loss over the width, the tokens being what the budget leaves.

    Raises:
        UserError: a budget that is not positive, or so small or large that the best width lies
            outside what a model can have.
    """
    if not budget > 0:
        raise UserError(f"budget {budget:g} is not positive: give training FLOPs, such as 1e19")

    def loss(log_width: float) -> float:
        width = float(np.exp(log_width))
        tokens = budget / layout.flops_per_token(width)
        return float(
            law.loss(
                *(layout.recurrences, layout.n_once(width)),
                n_rec=layout.n_rec(width),
                tokens=tokens,
            )
        )

    low, high = np.log(WIDTH_RANGE)
    best = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
    if min(best.x - low, high - best.x) < 1e-3:
        raise UserError(f"budget {budget:g} has no best width between {WIDTH_RANGE}")
    width = float(np.exp(best.x))
    return Allocation(
        recurrences=layout.recurrences,
        budget=budget,
        width=width,
        n_total=layout.n_total(width),
        tokens=budget / layout.flops_per_token(width),
        loss=float(best.fun),
    )
