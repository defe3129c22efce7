"""Grids of runs for the tests: the published ones, and synthetic ones that obey a known law."""

import numpy as np
import pandas as pd

from looped.architecture import Architecture
from looped.scaling.law import Law
from looped.scaling.published import published_runs

TRUTH = Law(E=1.6, A=30.0, alpha=0.21, B=900.0, beta=0.37, phi=0.46)


def published(recipe: str, *, budgets_below: float = np.inf, match_budgets: bool = True):
    table = published_runs().of_recipe(recipe, match_budgets=match_budgets)
    return table[table["budget_flops"] < budgets_below]


def architecture(width: int, recurrences: int) -> Architecture:
    """The paper's iso-depth layout: 2 + 16 + 2 effective layers."""
    return Architecture(
        width=width,
        num_heads=width // 128,
        recurrent_layers=16 // recurrences,
        recurrences=recurrences,
    )


def synthetic(
    law: Law = TRUTH,
    *,
    noise: float = 0.0,
    seed: int = 0,
    recurrences=(1, 2, 4, 8),
    budgets=(4.64e17, 1e18, 2.15e18, 4.64e18, 1e19, 2.15e19),
    widths=(512, 768, 1024, 1280),
    tokens_per_parameter: float | None = None,
    token_counts=None,
) -> pd.DataFrame:
    """Runs whose loss is the law's plus normal noise in nats.

    Iso-FLOP by default; `token_counts` gives every size the same token counts instead, and
    `tokens_per_parameter` ties the tokens to the size.
    """
    generator = np.random.default_rng(seed)
    rows = []
    for level in token_counts or budgets:
        for r in recurrences:
            for width in widths:
                model = architecture(width, r)
                groups = model.parameter_groups()
                size = groups.n_once + groups.n_rec
                if tokens_per_parameter:
                    tokens = tokens_per_parameter * size
                elif token_counts:
                    tokens = level
                else:
                    tokens = level / model.flops_per_token()
                rows.append(
                    {
                        "run": f"{level:g}-{r}-{width}",
                        "recipe": "baseline",
                        "recurrences": r,
                        "n_once": groups.n_once,
                        "n_rec": groups.n_rec,
                        "tokens": tokens,
                        "width": width,
                        "n_injection": groups.injection,
                        "control": None,
                        "level": f"{level:.3g} {'tokens' if token_counts else 'FLOPs'}",
                    }
                )
    table = pd.DataFrame(rows)
    exact = law.loss(
        table["recurrences"], table["n_once"], n_rec=table["n_rec"], tokens=table["tokens"]
    )
    table["loss"] = exact + generator.normal(0, noise, len(table)) if noise else exact
    return table
