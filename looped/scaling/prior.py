"""What is believed of the law and its noise before a sweep is run."""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from looped.errors import UserError
from looped.scaling.law import Law


@dataclass(frozen=True, kw_only=True)
class Prior:
    """A law and how far runs lie from it.

    Attributes:
        law: its six numbers.
        noise: standard deviation of a run's loss about the law, nats per token.
        source: where both come from, in words.
        tokens: fewest and most training tokens of the runs it was fitted to; null when not known.
    """

    law: Law
    noise: float
    source: str
    tokens: tuple[float, float] | None = None


PUBLISHED = Prior(
    law=Law(E=1.56721, A=28.2789, alpha=0.199773, B=891.785, beta=0.367194, phi=0.45757),
    noise=0.01046,
    source="the published fit",
    tokens=(3.2e8, 8.0e9),
)
"""The default fit of the published baseline; the noise is its RMSE with six degrees of freedom
taken off."""


def read_prior(path: Path, *, recipe: str) -> Prior:
    """The law and noise of a fit that `looped phi --json` wrote.

    Args:
        path: the file.
        recipe: whose fit to take; without it the baseline's, or the only one there.

    Raises:
        UserError: unreadable, of another origin, or a fit that carries no law or no noise.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        recipes: dict[str, Any] = content["recipes"]
        name = _choose(recipes, recipe)
        fit = recipes[name]
        numbers = fit["law"] | {"phi": fit["phi"]["value"]}
        freedom = fit["n_runs"] - fit["n_parameters"]
        rmse = fit["rmse"]
    except OSError as error:
        raise UserError(f"--law {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"--law {path}: not the JSON of a fit ({error}): write it with looped phi --json"
        ) from error
    unknown = [f.name for f in fields(Law) if numbers.get(f.name) is None]
    if unknown or freedom < 1 or not rmse:
        what = ", ".join(unknown) if unknown else "the noise"
        raise UserError(
            f"--law {path}: the fit of {name} does not tell {what}; leave --law out to plan with "
            "the published law"
        )
    noise = float(rmse * np.sqrt(fit["n_runs"] / freedom))
    return Prior(law=Law(**numbers), noise=noise, source=f"the fit of {name} in {path}")


def _choose(recipes: dict[str, Any], recipe: str) -> str:
    for name in (recipe, "baseline"):
        if name in recipes:
            return name
    if len(recipes) == 1:
        return next(iter(recipes))
    raise ValueError(f"it has {', '.join(recipes) or 'no recipe'}, none of them {recipe}")
