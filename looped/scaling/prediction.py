"""What the law says of runs it has not seen: a cell left out, the largest budget left out."""

from dataclasses import dataclass

import numpy as np

from looped.scaling.fit import FEW_STARTS, FitResult, fit_law
from looped.scaling.fitted import Fitted
from looped.scaling.law import Floats
from looped.scaling.levels import level_order


@dataclass(frozen=True, kw_only=True)
class PredictionError:
    """Errors L - L_hat of runs that the fit had not seen, in nats.

    Attributes:
        left_out: what was left out, in words.
        num_runs: predicted.
        bias: mean error; above 0 when the law was too hopeful.
        rmse: root mean square error.
    """

    left_out: str
    num_runs: int
    bias: float
    rmse: float


def leave_one_cell_out(fit: FitResult) -> PredictionError | None:
    """Predict every cell from all others; null where there is no law or a single cell."""
    if fit.optimum is None or fit.num_cells < 2 or fit.num_runs <= fit.num_free:
        return None
    fitted = Fitted.of(fit)
    without = fitted.refit(weights=fitted.without_each_cell()).theta  # one row per cell
    predicted = np.exp(fitted.design.log_prediction(without))  # (cells, n)
    errors = np.exp(fitted.design.log_loss) - predicted[fitted.cells, np.arange(fit.num_runs)]
    return _summary("each cell in turn", errors)


def leave_top_level_out(fit: FitResult) -> PredictionError | None:
    """Predict the largest budget (or token count) from the smaller ones.

    Null where there is no law, or where the rest cannot carry one: a law without E, B and beta
    says nothing of other token counts.
    """
    if fit.law is None or "level" not in fit.runs or fit.runs["level"].nunique() < 2:
        return None
    top = max(fit.runs["level"].unique(), key=level_order)
    inside, outside = (fit.runs[fit.runs["level"] != top], fit.runs[fit.runs["level"] == top])
    lower = fit_law(inside, **fit.options, polish=FEW_STARTS)
    if lower.law is None or not lower.identifiable or lower.uncarried:
        return None
    law = lower.law
    predicted = law.loss(
        outside["recurrences"], outside["n_once"], n_rec=outside["n_rec"], tokens=outside["tokens"]
    )
    return _summary(f"all of {top}", outside["loss"].to_numpy(dtype=float) - predicted)


def _summary(left_out: str, errors: Floats) -> PredictionError:
    return PredictionError(
        left_out=left_out,
        num_runs=len(errors),
        bias=float(errors.mean()),
        rmse=float(np.sqrt((errors**2).mean())),
    )
