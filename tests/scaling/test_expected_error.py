"""The expected standard error of phi against independent routes to the same number."""

from dataclasses import astuple, replace

import numpy as np
import pandas as pd
import pytest

from looped.scaling.expected_error import ExpectedDifference, expected_difference, expected_error
from looped.scaling.fit import fit_law
from looped.scaling.prior import PUBLISHED, Prior
from looped.scaling.published import published_runs

RAW = ("E", "A", "alpha", "B", "beta", "phi")


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    return published_runs().of_recipe("baseline")


def _raw_derivatives(runs, *, offset=False):
    """Numerical derivatives of L by E, A, alpha, B, beta and phi; with that by an offset in log L.

    Rows of the unit of the noise.
    """
    law = PUBLISHED.law
    sizes = (runs["recurrences"], runs["n_once"])
    rest = {"n_rec": runs["n_rec"], "tokens": runs["tokens"]}
    columns = []
    for name in RAW:
        value = getattr(law, name)
        up, down = (
            replace(law, **{name: value * (1 + step)}).loss(*sizes, **rest)
            for step in (1e-5, -1e-5)
        )
        columns.append((up - down) / (2e-5 * value))
    if offset:
        columns.append(law.loss(*sizes, **rest) * (runs["recurrences"] > 1))
    return np.array(columns).T / PUBLISHED.noise


def _least_squares(j):
    """(J'J)^-1 J', by columns of unit length and a plain inverse."""
    scale = np.linalg.norm(j, axis=0)
    unit = j / scale
    return np.linalg.inv(unit.T @ unit) @ unit.T / scale[:, np.newaxis]


def test_information_matrix_in_the_laws_own_parameters(runs):
    """Numerical derivatives by E, A, alpha, B, beta, phi and a plain inverse: the same error."""
    j = _raw_derivatives(runs)
    for held in ([], ["E"], ["alpha", "beta"]):
        free = j[:, [name not in held for name in RAW]]
        stderr = np.linalg.norm(_least_squares(free)[-1])
        found = expected_error(runs, PUBLISHED, fix=dict.fromkeys(held, 1.0))
        assert found.phi_stderr == pytest.approx(stderr, rel=1e-4)


def test_an_offset_beside_phi(runs):
    """Seven columns instead of six; the change between two recipes counts common runs once."""
    second = runs.assign(run=np.where(runs["recurrences"] == 1, runs["run"], "o" + runs["run"]))
    second = second[second["recurrences"] != 4]
    first, other = (_least_squares(_raw_derivatives(own, offset=True)) for own in (runs, second))
    found = expected_error(runs, PUBLISHED)
    assert astuple(found.with_offset) == pytest.approx(np.linalg.norm(first[-2:], axis=1), rel=1e-4)
    assert found.with_offset.phi > 1.5 * found.phi_stderr

    shared = [own["recurrences"].to_numpy() == 1 for own in (runs, second)]
    both = (first[-2:, shared[0]] * other[-2:, shared[1]]).sum(axis=1)
    variance = (first[-2:] ** 2).sum(axis=1) + (other[-2:] ** 2).sum(axis=1) - 2 * both
    change = expected_difference(runs, second, prior=PUBLISHED)
    assert astuple(change.with_offset) == pytest.approx(np.sqrt(variance), rel=1e-4)


def test_one_count_above_1_cannot_tell_an_offset(runs):
    """Phi it can."""
    few = runs[runs["recurrences"].isin([1, 4])]
    assert expected_error(few, PUBLISHED).phi_stderr is not None
    assert expected_error(few, PUBLISHED).with_offset is None
    change = expected_difference(runs, few, prior=PUBLISHED)
    assert change.phi_stderr is not None
    assert change.with_offset is None


def test_a_phi_that_is_held_has_no_error(runs):
    expected = expected_error(runs, PUBLISHED, fix={"phi": 1.0})
    assert (expected.phi_stderr, expected.faults) == (None, ("it is held at 1",))


def test_scatter_of_simulated_fits(runs):
    """The spread of phi over least-squares fits of simulated losses is what was expected."""
    small = runs[runs["budget_flops"] < 3e18]
    law = PUBLISHED.law
    prior = Prior(law=law, noise=1e-3, source="the test")
    loss = law.loss(
        small["recurrences"], small["n_once"], n_rec=small["n_rec"], tokens=small["tokens"]
    )
    rng = np.random.default_rng(0)
    found = [
        fit_law(
            small.assign(loss=loss + rng.normal(0, prior.noise, len(loss))),
            estimator="least_squares",
            polish=1,
        ).phi
        for _ in range(40)
    ]
    expected = expected_error(small, prior).phi_stderr
    assert np.std(found) == pytest.approx(expected, rel=0.3)  # 40 draws: 11 % at one sigma
    assert np.mean(found) == pytest.approx(law.phi, abs=4 * expected / np.sqrt(40))


def test_noise_and_repetition_scale_it(runs):
    """Twice the noise, twice the error; four times the runs, half of it."""
    once = expected_error(runs, PUBLISHED).phi_stderr
    noisier = Prior(law=PUBLISHED.law, noise=2 * PUBLISHED.noise, source="the test")
    assert expected_error(runs, noisier).phi_stderr == pytest.approx(2 * once)
    assert expected_error(pd.concat([runs] * 4), PUBLISHED).phi_stderr == pytest.approx(once / 2)


@pytest.mark.parametrize(
    ("keep", "words"),
    [
        ("recurrences > 1", "no run with r = 1"),
        ("recurrences == 4", "a single recurrence count"),
        ("budget_flops == 1e18", "a single budget"),
        ("width == 640 and budget_flops < 1e18", "at least 8 are needed"),
        ("recurrences > 99", "no runs"),
    ],
)
def test_designs_that_cannot_tell(runs, keep, words):
    """A number for a design in which phi has nothing to be measured against would mislead."""
    expected = expected_error(runs.query(keep), PUBLISHED)
    assert expected.phi_stderr is None
    assert words in "; ".join(expected.faults)


def _losses(runs, law, rng, *, common):
    """Simulated losses of a recipe; a plain run has the noise it was drawn once."""
    noise = rng.normal(0, 1e-3, len(runs))
    noise = np.where(runs["recurrences"] == 1, common[: len(runs)], noise)
    return noise + law.loss(
        runs["recurrences"], runs["n_once"], n_rec=runs["n_rec"], tokens=runs["tokens"]
    )


def test_the_difference_of_two_recipes(runs):
    """Two recipes of one phi on the same plain runs: the scatter of simulated differences.

    Were the plain runs drawn twice, it would be larger: by the root of both variances.
    """
    small = runs[runs["budget_flops"] < 3e18].reset_index(drop=True)
    second = small.assign(
        run=np.where(small["recurrences"] == 1, small["run"], "other " + small["run"])
    )
    prior = Prior(law=PUBLISHED.law, noise=1e-3, source="the test")
    expected = expected_difference(small, second, prior=prior).phi_stderr
    apart = np.sqrt(2) * expected_error(small, prior).phi_stderr
    rng = np.random.default_rng(0)
    found = []
    for _ in range(40):
        common = rng.normal(0, 1e-3, len(small))
        first, other = (
            fit_law(
                table.assign(loss=_losses(table, prior.law, rng, common=common)),
                estimator="least_squares",
                polish=1,
            ).phi
            for table in (small, second)
        )
        found.append(other - first)
    assert np.std(found) == pytest.approx(expected, rel=0.3)
    assert expected < 0.8 * apart


def test_a_recipe_against_itself_and_one_that_tells_nothing(runs):
    """The same runs do not differ at all; half a design has no difference."""
    same = expected_difference(runs, runs, prior=PUBLISHED)
    assert (same.phi_stderr, *astuple(same.with_offset)) == (0.0, 0.0, 0.0)
    plain = runs[runs["recurrences"] == 1]
    nothing = ExpectedDifference(phi_stderr=None, with_offset=None)
    assert expected_difference(runs, plain, prior=PUBLISHED) == nothing
