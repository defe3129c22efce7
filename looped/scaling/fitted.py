"""The least that a resampling scheme needs to know of a fit: arrays, optimum, cells."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from looped.scaling.fit import FitResult
from looped.scaling.huber import dispersion
from looped.scaling.law import PHI, Design, Floats
from looped.scaling.many_fits import ManyFits, fit_many


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A fit as arrays.

    Attributes:
        design: the n runs.
        theta: the optimum; shape (p,).
        objective: sum of rho there.
        free: which parameters were fitted; shape (p,).
        delta: of Huber's function; infinity under least squares.
        cells: number of each run's cell; shape (n,).
    """

    design: Design
    theta: Floats
    objective: float
    free: NDArray[np.bool_]
    delta: float
    cells: NDArray[np.intp]

    @classmethod
    def of(cls, fit: FitResult) -> "Fitted":
        """Of a fit that ran and did not hold phi."""
        assert fit.optimum is not None
        return cls(
            design=fit.design,
            theta=fit.optimum.theta,
            objective=fit.optimum.objective,
            free=fit.optimum.free,
            delta=fit.delta,
            cells=fit.cells,
        )

    @property
    def phi(self) -> float:
        """The exponent at the optimum."""
        return float(self.theta[PHI])

    @property
    def num_cells(self) -> int:
        """G, the number of cells."""
        return int(self.cells.max()) + 1

    @property
    def freedom(self) -> int:
        """Degrees of freedom of an error estimated from residuals of cells: cells - parameters."""
        return self.num_cells - int(self.free.sum())

    @property
    def residuals(self) -> Floats:
        """Residuals log L_hat - log L; shape (n,)."""
        return self.design.log_prediction(self.theta) - self.design.log_loss

    @property
    def dispersion(self) -> float:
        """What twice the objective is divided by to be chi-squared."""
        return dispersion(self.residuals, self.delta, num_parameters=int(self.free.sum()))

    def refit(
        self,
        *,
        weights: Floats | None = None,
        log_loss: Floats | None = None,
        start: Floats | None = None,
    ) -> ManyFits:
        """Fit again with other weights or losses, from the optimum; shapes as in `fit_many`.

        A drawing without the runs that tell phi stays where it started: it has not converged.
        """
        found = fit_many(
            self.design,
            self.theta if start is None else start,
            delta=self.delta,
            free=self.free,
            weights=weights,
            log_loss=log_loss,
        )
        if weights is None or not self.free[PHI]:
            return found
        return replace(found, converged=found.converged & self._tells(weights).all(axis=1))

    def loop_values(self, weights: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """phi, or what stands for it, fitted to drawings of the runs.

        Args:
            weights: how often each run was drawn; shape (m, n).

        Returns:
            The q parameters from PHI on of each drawing, shape (m, q), and whether each was told: a
            fit that converged inside the box, on a drawing with runs that tell it.
        """
        found = fit_many(self.design, self.theta, delta=self.delta, free=self.free, weights=weights)
        low, high = self.design.bounds()
        values = found.theta[:, PHI:]
        inside = (values > low[PHI:]) & (values < high[PHI:])
        return values, found.converged[:, np.newaxis] & inside & self._tells(weights)

    def without_each_cell(self) -> Floats:
        """The drawings that leave out one cell each, in the order of the cells; shape (G, n)."""
        return np.asarray(1.0 - np.eye(self.num_cells)[:, self.cells])

    def _tells(self, weights: Floats) -> NDArray[np.bool_]:
        """Whether each drawing of shape (m, n) holds runs that tell phi, or what stands for it.

        Returns:
            Shape (m, q): of each of the q parameters from PHI on, whether runs on which it acts
            were drawn, and plain ones if any exist.
        """
        touched = self.design.terms.touched
        plain = ~touched.any(axis=1)
        drawn = weights > 0
        looped = np.stack([drawn[:, acts].any(axis=1) for acts in touched.T], axis=1)
        return looped & drawn[:, plain].any(axis=1, keepdims=True) if plain.any() else looped

    def with_losses(self, log_loss: Floats) -> "Fitted":
        """The same design and parameters held, fitted to other losses of shape (n,)."""
        found = self.refit(log_loss=log_loss[np.newaxis])
        return replace(
            self,
            design=replace(self.design, log_loss=log_loss),
            theta=found.theta[0],
            objective=float(found.objective[0]),
        )
