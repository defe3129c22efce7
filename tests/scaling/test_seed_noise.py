"""Chance between seeds and what the law misses beside it: an analysis of variance by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from looped.scaling import fit_law
from looped.scaling.seed_noise import seed_noise
from tests.scaling.grids import published, synthetic

QUICK = {"estimator": "least_squares", "polish": 1}


def seeds(number: int, *, noise: float, bend: float = 0.0, seed: int = 0) -> pd.DataFrame:
    """A grid with several seeds of every size; `bend` puts r = 2 and 4 off the law, in log L."""
    table = pd.concat([synthetic().assign(seed=s) for s in range(number)], ignore_index=True)
    loss = table["loss"] * np.exp(bend * table["recurrences"].isin([2, 4]))
    return table.assign(loss=loss + np.random.default_rng(seed).normal(0, noise, len(table)))


def test_the_scatter_between_seeds():
    """Two seeds: half the squares of their differences; what the law misses is not in it."""
    table = seeds(2, noise=0.01, bend=0.05)
    pairs = table.pivot_table(index=["n_once", "n_rec", "tokens"], columns="seed", values="loss")
    expected = np.sqrt((np.square(pairs[0] - pairs[1]) / 2).mean())
    found = seed_noise(fit_law(table, estimator="least_squares"))
    assert found.noise == pytest.approx(expected)
    assert found.groups == found.freedom == len(pairs)


def test_the_lack_of_fit_is_the_textbooks():
    """From group means and predictions, which is where the residual's remainder comes from."""
    table = seeds(3, noise=0.01)
    fit = fit_law(table, estimator="least_squares")
    log_loss = np.log(table["loss"])
    means = log_loss.groupby([table["n_once"], table["n_rec"], table["tokens"]]).transform("mean")
    predicted = log_loss - np.log1p(fit.residuals_nats / (table["loss"] - fit.residuals_nats))
    sizes = len(table) // 3
    f = (np.square(means - predicted).sum() / (sizes - 6)) / (
        np.square(log_loss - means).sum() / (2 * sizes)
    )
    found = seed_noise(fit)
    assert found.p == pytest.approx(stats.f.sf(f, sizes - 6, 2 * sizes), rel=1e-6)


def test_a_law_that_holds_is_rejected_as_seldom_as_it_should_be():
    """And one that does not is rejected, although its residual alone tells nobody."""
    rejected = [
        seed_noise(fit_law(seeds(2, noise=0.01, seed=seed), **QUICK)).p < 0.1 for seed in range(40)
    ]
    assert 1 <= sum(rejected) <= 10  # four expected
    bent = fit_law(seeds(2, noise=0.01, bend=0.02), estimator="least_squares")
    assert seed_noise(bent).p < 1e-6


def together(*, shared: float, own: float, seed: int = 0) -> pd.DataFrame:
    """Two seeds of every size; runs of one seed, level and width share part of their noise."""
    table = seeds(2, noise=own, seed=seed)
    block = table.groupby(["level", "width", "seed"]).ngroup()
    common = np.random.default_rng(seed + 1000).normal(0, shared, block.max() + 1)
    return table.assign(loss=table["loss"] + common[block])


def test_what_runs_of_one_seed_share_is_told_apart():
    """Half the squares of differences between two seeds, by hand, and the F test of both parts."""
    table = together(shared=0.02, own=0.005)
    only_first = (table["recurrences"] == 2) & (table["seed"] == 1)
    found = seed_noise(fit_law(table[~only_first], **QUICK)).shared
    whole = table[table["recurrences"] != 2]  # r = 2 has no second seed
    losses = whole.pivot(index=["level", "width", "seed"], columns="recurrences", values="loss")
    apart = losses.xs(0, level="seed") - losses.xs(1, level="seed")
    means = apart.mean(axis=1)
    left = np.square(apart.sub(means, axis=0)).to_numpy().sum() / 2 / (2 * len(apart))
    between = 3 * np.square(means).sum() / 2 / len(apart)
    assert found.own == pytest.approx(np.sqrt(left))
    assert found.own == pytest.approx(0.005, rel=0.2)
    assert found.p == pytest.approx(stats.f.sf(between / left, len(apart), 2 * len(apart)))
    assert found.p < 1e-6


def test_independent_runs_are_seldom_said_to_err_together():
    """One in ten at 0.1; without blocks, or with one count in each, there is nothing to say."""
    rejected = 0
    for seed in range(40):
        rejected += seed_noise(fit_law(seeds(2, noise=0.01, seed=seed), **QUICK)).shared.p < 0.1
    assert 1 <= rejected <= 10
    table = seeds(2, noise=0.01)
    assert seed_noise(fit_law(table.drop(columns="width"), **QUICK)).shared is None
    few = table[(table["seed"] == 0) | (table["recurrences"] == 4)]
    assert seed_noise(fit_law(few, **QUICK)).shared is None
    twice = pd.concat([table, table.iloc[:1]], ignore_index=True)  # not in its seed alone
    block = (table["level"] == table["level"].iloc[0]) & (table["width"] == table["width"].iloc[0])
    others = seed_noise(fit_law(table[~block], **QUICK)).shared
    assert seed_noise(fit_law(twice, **QUICK)).shared == others


def test_without_second_seeds_or_least_squares_there_is_no_test():
    """The published runs have one seed each; Huber's objective is no sum of squares."""
    assert seed_noise(fit_law(published("baseline"))) is None
    found = seed_noise(fit_law(seeds(2, noise=0.01)))
    assert found.noise == pytest.approx(0.01, rel=0.25)
    assert found.p is None


def test_what_may_differ_in_more_than_its_seed_is_no_repetition():
    """Seeds unknown, or the same twice: another learning rate is no noise."""
    table = seeds(2, noise=0.01)
    assert seed_noise(fit_law(table.assign(seed=0), **QUICK)) is None
    assert seed_noise(fit_law(table.assign(seed=np.nan), **QUICK)) is None
    assert seed_noise(fit_law(table.drop(columns="seed"), **QUICK)) is None
    first = table["n_rec"] == table["n_rec"].min()
    once = table.assign(seed=table["seed"].where(first, 0))
    assert seed_noise(fit_law(once, **QUICK)).groups < seed_noise(fit_law(table, **QUICK)).groups
