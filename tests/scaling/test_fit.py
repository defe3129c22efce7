"""The fit: published figures, recovery of a known law, and what it refuses to say."""

import math
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

from looped.architecture import Architecture
from looped.errors import UserError
from looped.scaling import fit_law
from looped.scaling.published import published_minima
from tests.scaling.grids import TRUTH, published, synthetic

# shared/published/README.md: phi, alpha, beta, E, A, B, objective, R2.
PUBLISHED = {
    "baseline": (0.4576, 0.1998, 0.3672, 1.5672, 28.28, 891.8, 2.84099e-4, 0.9972),
    "least squares": (0.4645, 0.2009, 0.3614, 1.5676, 28.57, 803.4, 8.06907e-4, 0.9972),
    "phi = 0": (0, 0.2210, 0.3861, 1.6921, 31.80, 1366, 7.61188e-4, 0.9857),
    "phi = 1": (1, 0.2183, 0.4101, 1.6616, 39.03, 2059, 1.42018e-3, 0.9543),
    "four budgets": (0.4517, 0.2667, 0.4570, 1.8540, 69.94, 4527, 1.65194e-4, 0.9958),
    "truncated": (0.3784, 0.2554, 0.4828, 1.8666, 59.12, 7030, 3.57253e-4, 0.9821),
    "truncated, all r = 1": (0.3515, 0.2126, 0.3792, 1.6525, 33.36, 1045, 4.36790e-4, 0.9868),
}
TABLES = {
    "four budgets": lambda: published("baseline", budgets_below=5e18),
    "truncated": lambda: published("truncated"),
    "truncated, all r = 1": lambda: published("truncated", match_budgets=False),
}
OPTIONS = {
    "least squares": {"estimator": "least_squares"},
    "phi = 0": {"fix": {"phi": 0.0}},
    "phi = 1": {"fix": {"phi": 1.0}},
}
NUM_RUNS = {"four budgets": 80, "truncated": 81, "truncated, all r = 1": 90}


@pytest.mark.parametrize("row", PUBLISHED)
def test_the_published_runs_give_the_published_fit(row):
    """Every row of shared/published/README.md: objective to 1e-6, phi to 0.002, the law too."""
    phi, alpha, beta, floor, size, data, objective, r2 = PUBLISHED[row]
    fit = fit_law(TABLES.get(row, lambda: published("baseline"))(), **OPTIONS.get(row, {}))
    assert fit.num_runs == NUM_RUNS.get(row, 116)
    half_digit = 0.5 * 10 ** (math.floor(math.log10(objective)) - 5)  # six digits are printed
    assert fit.objective == pytest.approx(objective, rel=1e-6, abs=half_digit)
    assert fit.phi == pytest.approx(phi, abs=0.002)
    law = asdict(fit.law)
    assert law == pytest.approx(
        {"E": floor, "A": size, "alpha": alpha, "B": data, "beta": beta, "phi": phi},
        rel=2e-3,
        abs=1e-3,
    )
    assert fit.r2 == pytest.approx(r2, abs=1e-4)
    assert fit.identifiable
    assert fit.optimum.num_reached >= 15


def as_runs(minima: pd.DataFrame) -> pd.DataFrame:
    """The published minima as runs: each size split between once and recurrent by the layout.

    Minima lie between the widths of real runs, so the split and the FLOPs per token are taken from
    the two neighbouring widths, linearly in log N.
    """
    widths = np.arange(128, 4096, 128)
    rows = []
    for minimum in minima.itertuples():
        r = minimum.recurrences
        models = [
            Architecture(
                width=int(w), num_heads=int(w) // 128, recurrent_layers=16 // r, recurrences=r
            )
            for w in widths
        ]
        once = np.array([m.parameter_groups().n_once for m in models])
        rec = np.array([m.parameter_groups().n_rec for m in models])
        flops = np.array([m.flops_per_token() for m in models])
        at = np.log(minimum.n_total)
        known = np.log(once + rec)
        share = np.interp(at, known, rec / (once + rec))
        per_token = np.exp(np.interp(at, known, np.log(flops)))
        rows.append(
            {
                "recurrences": r,
                "n_once": minimum.n_total * (1 - share),
                "n_rec": minimum.n_total * share,
                "tokens": minimum.budget_flops / per_token,
                "loss": minimum.loss,
                "level": f"{minimum.budget_flops:g} FLOPs",
            }
        )
    return pd.DataFrame(rows)


def test_the_published_minima_give_the_same_phi():
    """A second, independent reading of the paper: 24 published numbers instead of 116 read off."""
    fit = fit_law(as_runs(published_minima()), estimator="least_squares")
    assert fit.num_runs == 24
    assert fit.phi == pytest.approx(0.465, abs=0.005)


def test_noiseless_data_give_back_the_law():
    """Without noise nothing but the six numbers of the law may come out, to many digits."""
    fit = fit_law(synthetic(), estimator="least_squares")
    for name in ("E", "A", "alpha", "B", "beta", "phi"):
        assert getattr(fit.law, name) == pytest.approx(getattr(TRUTH, name), rel=1e-5)
    assert fit.rmse < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["huber", "least_squares"])
def test_phi_is_recovered_without_bias(estimator):
    """200 grids with 0.005 nats of noise: a systematic pull on phi would show in their mean."""
    phis = np.array(
        [
            fit_law(synthetic(noise=0.005, seed=seed), estimator=estimator, polish=1).phi
            for seed in range(200)
        ]
    )
    assert abs(phis.mean() - TRUTH.phi) < 2 * phis.std(ddof=1) / np.sqrt(len(phis))
    assert phis.std(ddof=1) < 0.03


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (synthetic().iloc[[0, 20, 40, 60, 80]], "5 runs for 6 parameters"),
        (synthetic().iloc[[0, 20, 25, 40, 60, 75, 90]], "7 runs for 6 parameters"),
        (synthetic(noise=0.005, recurrences=(4,)), "a single recurrence count, r = 4"),
        (synthetic(noise=0.005, recurrences=(1,)), "a single recurrence count, r = 1"),
        (synthetic(noise=0.005, recurrences=(2, 4, 8)), "no run with r = 1"),
        (synthetic(noise=0.005, budgets=(1e19,)), "a single budget"),
        (synthetic(noise=0.005, token_counts=(1e9,)), "a single budget"),
        (synthetic(noise=0.005, widths=(512,)), "a single width"),
        (synthetic(noise=0.005, tokens_per_parameter=20.0), "tokens tied to parameters"),
    ],
)
def test_what_the_data_cannot_carry_is_not_a_number(table, words):
    """A design that cannot tell phi gives no phi, and says in words why."""
    fit = fit_law(table)
    assert not fit.identifiable
    assert fit.phi is None
    assert fit.stderr is None
    assert any(words in fault for fault in fit.faults), fit.faults


def test_too_few_runs_are_not_even_fitted():
    """Fewer runs than parameters + 2: a number all the same would be taken for an answer."""
    for rows in ([0, 30, 60], [0, 20, 25, 40, 60, 75, 90]):
        fit = fit_law(synthetic().iloc[rows])
        assert (fit.law, fit.objective, fit.r2, fit.rmse, fit.optimum) == (None,) * 5


def test_the_fault_says_why_parameters_are_fewer():
    """Without it 5 parameters of a law that has 6 look like a mistake."""
    table = synthetic(token_counts=(5e9, 2e10)).iloc[[0, 5, 10, 20]]
    (fault, *_) = fit_law(table).faults
    assert fault == "4 runs for 5 parameters (six, less beta, held): at least 7 are needed"
    (fault, *_) = fit_law(table, fix={"E": 1.5}).faults
    assert fault.startswith("4 runs for 4 parameters (six, less E, beta, held)")


def test_a_parameter_at_its_bound_is_a_fault():
    """Losses that fall steeply with r push phi to its bound; lmfit calls that a success."""
    table = synthetic(noise=0.002)
    table["loss"] -= 0.4 * np.log(table["recurrences"])
    fit = fit_law(table)
    assert not fit.identifiable
    assert any("phi at the bound of its box [-2, 3]" in fault for fault in fit.faults)


def test_two_token_counts_still_tell_phi():
    """Two token counts cannot tell beta from E; phi is unaffected by where beta is held."""
    table = synthetic(noise=0.002, token_counts=(5e9, 2e10), widths=(384, 512, 768, 1024, 1536))
    fit = fit_law(table, estimator="least_squares")
    assert fit.identifiable
    assert fit.held == {"beta": 0.37}
    assert fit.uncarried == ("E", "B", "beta")
    assert any("two token counts" in warning for warning in fit.warnings)
    assert fit.phi == pytest.approx(TRUTH.phi, abs=0.03)
    other = fit_law(table, estimator="least_squares", fix={"beta": 0.30})
    assert other.phi == pytest.approx(fit.phi, abs=1e-4)


def test_held_parameters_keep_their_value():
    """--fix: what is held comes back exactly, what is not held is fitted as well as it can be."""
    fit = fit_law(published("baseline"), fix={"alpha": 0.25, "E": 1.7})
    assert fit.law.alpha == 0.25
    assert math.isclose(fit.law.E, 1.7, rel_tol=1e-12)
    assert fit.num_free == 4
    assert fit.objective > fit_law(published("baseline")).objective


def test_noise_far_above_delta_is_named_with_the_delta_that_fits_it():
    """A user at small scale must learn that 1e-3 turns the fit into least absolute deviations."""
    fit = fit_law(synthetic(noise=0.03))
    (warning,) = [w for w in fit.warnings if "least absolute deviations" in w]
    suggested = float(warning.split("--delta ")[1].split()[0])
    assert suggested == pytest.approx(1.345 * 0.03 / synthetic()["loss"].mean(), rel=0.3)
    assert not any("least absolute" in w for w in fit_law(synthetic(noise=0.003)).warnings)


def test_repeated_data_and_starved_runs_are_flagged():
    """The law assumes fresh tokens and more tokens than parameters."""
    table = published("baseline").assign(epochs=1.0)
    table.loc[table.index[:3], "epochs"] = 2.5
    table.loc[table.index[-1], "tokens"] = 1e6
    text = " ".join(fit_law(table).warnings)
    assert "3 of 116 runs saw their data more than once" in text
    assert "1 of 116 runs saw fewer tokens than they have parameters" in text


def test_runs_without_cells_are_said_to_be_taken_as_independent():
    """A table without budgets gives each run a cell of its own: the interval rests on that."""
    table = published("baseline")
    table["level"] = [f"{tokens} tokens" for tokens in table["tokens"]]
    (warning,) = fit_law(table, polish=1).warnings
    assert "no two runs share a budget" in warning


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({}, {"estimator": "magic"}, "'magic' is unknown: choose huber or least_squares"),
        ({}, {"delta": 0.0}, "delta 0 is not between"),
        ({}, {"delta": 1e-300}, "delta 1e-300 is not between"),
        ({}, {"fix": {"gamma": 1.0}}, "cannot fix 'gamma'"),
        ({}, {"fix": {"alpha": -1.0}}, "cannot fix alpha at -1: it lies between"),
        ({}, {"fix": {"phi": np.nan}}, "cannot fix phi at nan"),
        ({"loss": np.nan}, {}, "run 0 .* its loss is nan"),
        ({"tokens": 0}, {}, "run 0 .* its tokens is 0"),
    ],
)
def test_mistakes_are_named(change, options, words):
    """Wrong arguments and values that are no numbers are the user's errors, not tracebacks."""
    with pytest.raises(UserError, match=words):
        fit_law(synthetic().assign(**change), **options)
    with pytest.raises(UserError, match="lacks the column 'n_rec'"):
        fit_law(synthetic().drop(columns="n_rec"))
