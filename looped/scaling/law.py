"""The law of arXiv 2604.21106 and the form in which it is fitted.

    L = E + A (N_once + r^phi N_rec)^-alpha + B D^-beta

Fitted is theta = (log E, log a, log b, alpha, beta, phi) with

    a = A Nbar^-alpha,  b = B Dbar^-beta:

the two reducible losses, in nats, of a run of the geometric mean size Nbar and token count Dbar.
A and B themselves change by orders of magnitude with alpha and beta; a and b hardly move.

Other forms of the law put other parameters in the place of phi, and after it (`loop_terms.py`).
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from looped.scaling.loop_terms import Form, LoopTerms

Floats = NDArray[np.float64]

LOG_E, LOG_A, LOG_B, ALPHA, BETA, PHI = range(6)
"""Columns of theta; in other forms than the plain one their parameters begin at PHI."""

LAW_NAMES = ("E", "A", "alpha", "B", "beta")
"""The numbers that all forms share."""


@dataclass(frozen=True, kw_only=True)
class Law:
    """One set of the law's six numbers.

    Attributes:
        E: irreducible loss, nats per token.
        A: scale of the size term, nats x parameters^alpha.
        alpha: exponent of the size term.
        B: scale of the data term, nats x tokens^beta.
        beta: exponent of the data term.
        phi: what a recurrence is worth: r passes count as r^phi unique blocks.
    """

    E: float
    A: float
    alpha: float
    B: float
    beta: float
    phi: float

    def effective_size(
        self, recurrences: ArrayLike, n_once: ArrayLike, *, n_rec: ArrayLike
    ) -> Floats:
        """N_once + r^phi N_rec, in parameters; arguments broadcast."""
        r = np.asarray(recurrences, dtype=float)
        return np.asarray(n_once + r**self.phi * np.asarray(n_rec, dtype=float))

    def loss(
        self,
        recurrences: ArrayLike,
        n_once: ArrayLike,
        *,
        n_rec: ArrayLike,
        tokens: ArrayLike,
    ) -> Floats:
        """Predicted validation loss in nats per token; arguments broadcast."""
        size = self.effective_size(recurrences, n_once, n_rec=n_rec)
        return self.loss_of_size(size, tokens)

    def loss_of_size(self, effective_size: ArrayLike, tokens: ArrayLike) -> Floats:
        """Predicted loss of an effective size and a token count; arguments broadcast."""
        size, data = np.asarray(effective_size, dtype=float), np.asarray(tokens, dtype=float)
        return np.asarray(self.E + self.A * size**-self.alpha + self.B * data**-self.beta)


@dataclass(frozen=True, kw_only=True)
class Design:
    """The runs as arrays, ready for the law: n runs, p = 5 + q parameters.

    Attributes:
        terms: the q parameters that say what being looped does, one (phi) in the plain form.
        n_once: N_once; shape (n,).
        n_rec: N_rec; shape (n,).
        log_tokens: log D - log Dbar; shape (n,).
        log_loss: log L as measured; shape (n,).
        log_size_mean: log Nbar, the mean of log(N_once + N_rec).
        log_tokens_mean: log Dbar.
    """

    terms: LoopTerms
    n_once: Floats
    n_rec: Floats
    log_tokens: Floats
    log_loss: Floats
    log_size_mean: float
    log_tokens_mean: float

    @classmethod
    def of_runs(cls, runs: pd.DataFrame, *, form: Form = "plain") -> "Design":
        """Arrays from a table with `recurrences, n_once, n_rec, tokens, loss`.

        Args:
            runs: one row per run, at least one.
            form: of the law.
        """
        n_once = runs["n_once"].to_numpy(dtype=float)
        n_rec = runs["n_rec"].to_numpy(dtype=float)
        log_tokens = np.log(runs["tokens"].to_numpy(dtype=float))
        return cls(
            terms=LoopTerms.of(runs["recurrences"].to_numpy(dtype=float), form),
            n_once=n_once,
            n_rec=n_rec,
            log_tokens=log_tokens - log_tokens.mean(),
            log_loss=np.log(runs["loss"].to_numpy(dtype=float)),
            log_size_mean=float(np.log(n_once + n_rec).mean()),
            log_tokens_mean=float(log_tokens.mean()),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of theta's columns."""
        return ("log_E", "log_a", "log_b", "alpha", "beta", *self.terms.names)

    def __len__(self) -> int:
        return len(self.log_loss)

    def effective_sizes(self, theta: Floats) -> tuple[Floats, Floats]:
        """N_eff and the share of the recurrent block in it, each (..., n) for theta (..., p)."""
        loop = theta[..., PHI:]
        looped = np.exp(loop @ self.terms.in_gain.T) * self.n_rec
        size = self.n_once + looped
        share = looped / size
        if self.terms.in_size is not None:
            size = size * np.exp(loop @ self.terms.in_size.T)
        return size, share

    def log_prediction(self, theta: Floats) -> Floats:
        """Logarithm of L_hat; theta of shape (..., p) gives (..., n)."""
        size_term, data_term, floor, _, _ = self._losses(theta)
        return self._offset(np.log(floor + size_term + data_term), theta)

    def log_prediction_and_jacobian(self, theta: Floats) -> tuple[Floats, Floats]:
        """Logarithm of L_hat, shape (..., n), and its derivatives by theta, shape (..., n, p).

        With S = a exp(-alpha x), T = b exp(-beta y), x = log N_eff - log Nbar, y = log D - log Dbar
        and s the share of the recurrent block in N_eff:

            dL/dlog E = E,   dL/dlog a = S,   dL/dlog b = T,
            dL/dalpha = -x S,   dL/dbeta = -y T,   dL/dphi = -alpha s log(r) S,

        and by the parameters of other forms dlog L/dx = -alpha (s G + H) S / L + K.
        """
        size_term, data_term, floor, x, share = self._losses(theta)
        loss = floor + size_term + data_term
        jacobian = np.empty((*loss.shape, theta.shape[-1]))
        jacobian[..., LOG_E] = floor / loss
        jacobian[..., LOG_A] = size_term / loss
        jacobian[..., LOG_B] = data_term / loss
        jacobian[..., ALPHA] = -x * jacobian[..., LOG_A]
        jacobian[..., BETA] = -self.log_tokens * jacobian[..., LOG_B]
        by_log_size = -theta[..., ALPHA, np.newaxis] * jacobian[..., LOG_A]
        terms = self.terms
        jacobian[..., PHI:] = (by_log_size * share)[..., np.newaxis] * terms.in_gain
        if terms.in_size is not None:
            jacobian[..., PHI:] += by_log_size[..., np.newaxis] * terms.in_size
        if terms.in_loss is not None:
            jacobian[..., PHI:] += terms.in_loss
        return self._offset(np.log(loss), theta), jacobian

    def _offset(self, log_loss: Floats, theta: Floats) -> Floats:
        """Add what the form adds to the logarithm of the loss."""
        if self.terms.in_loss is None:
            return np.asarray(log_loss)
        return np.asarray(log_loss + theta[..., PHI:] @ self.terms.in_loss.T)

    def _losses(self, theta: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Size term, data term and floor in nats; x and the share s, as above."""
        by_run = theta[..., np.newaxis]  # (..., p, 1): each parameter broadcasts over the runs
        size, share = self.effective_sizes(theta)
        x = np.log(size) - self.log_size_mean
        size_term = np.exp(by_run[..., LOG_A, :] - by_run[..., ALPHA, :] * x)
        data_term = np.exp(by_run[..., LOG_B, :] - by_run[..., BETA, :] * self.log_tokens)
        return size_term, data_term, np.exp(by_run[..., LOG_E, :]), x, share

    def bounds(self) -> tuple[Floats, Floats]:
        """Box of theta that no trustworthy fit touches; two arrays of shape (p,).

        E between a thousandth of the smallest loss and that loss; each reducible term between
        1e-4 and 10 times the mean loss; alpha and beta in [0.01, 3]; phi in [-2, 3], and the like
        for the parameters of other forms.
        """
        smallest, mean = float(self.log_loss.min()), float(self.log_loss.mean())
        term = (mean + np.log(1e-4), mean + np.log(10.0))
        box = [(smallest + np.log(1e-3), smallest), term, term, (0.01, 3.0), (0.01, 3.0)]
        low, high = np.array(box).T
        return np.append(low, self.terms.low), np.append(high, self.terms.high)

    def to_law(self, theta: Floats) -> Law:
        """The six numbers of one theta, with A and B in their own units.

        In other forms than the plain one phi is whatever stands in its place.
        """
        alpha, beta = float(theta[ALPHA]), float(theta[BETA])
        return Law(
            E=float(np.exp(theta[LOG_E])),
            A=float(np.exp(theta[LOG_A] + alpha * self.log_size_mean)),
            alpha=alpha,
            B=float(np.exp(theta[LOG_B] + beta * self.log_tokens_mean)),
            beta=beta,
            phi=float(theta[PHI]),
        )

    def to_theta(self, law: Law) -> Floats:
        """Inverse of `to_law`."""
        return np.array(
            [
                np.log(law.E),
                np.log(law.A) - law.alpha * self.log_size_mean,
                np.log(law.B) - law.beta * self.log_tokens_mean,
                law.alpha,
                law.beta,
                law.phi,
            ]
        )
