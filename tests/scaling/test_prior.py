"""The law to plan with: published, or from a fit's JSON."""

import json

import numpy as np
import pytest

from looped.errors import UserError
from looped.scaling.fit import fit_law
from looped.scaling.prior import PUBLISHED, read_prior
from looped.scaling.published import published_runs


def test_the_published_prior_is_the_published_fit():
    """Constants that drift from the fit they name would plan with another law."""
    fit = fit_law(published_runs().of_recipe("baseline"))
    for name in ("E", "A", "alpha", "B", "beta", "phi"):
        assert getattr(PUBLISHED.law, name) == pytest.approx(getattr(fit.law, name), rel=1e-3)
    assert PUBLISHED.noise == pytest.approx(fit.rmse * np.sqrt(116 / 110), rel=1e-3)


def _fit(**changes):
    law = {"E": 1.0, "A": 20.0, "alpha": 0.2, "B": 500.0, "beta": 0.4}
    fit = {"phi": {"value": 0.5}, "law": law, "rmse": 0.01, "n_runs": 24, "n_parameters": 6}
    return fit | changes


def _write(path, recipes):
    path.write_text(json.dumps({"schema": 1, "recipes": recipes, "excluded": []}))
    return path


def test_a_fit_of_looped_phi(tmp_path):
    """Law, phi and the noise with the degrees of freedom taken off; the recipe asked for first."""
    path = _write(tmp_path / "fit.json", {"baseline": _fit(), "cut": _fit(rmse=0.02)})
    prior = read_prior(path, recipe="cut")
    assert (prior.law.B, prior.law.phi) == (500.0, 0.5)
    assert prior.noise == pytest.approx(0.02 * np.sqrt(24 / 18))
    assert "cut" in prior.source
    assert read_prior(path, recipe="other").noise < prior.noise  # the baseline's


@pytest.mark.parametrize(
    ("recipes", "words"),
    [
        ({"baseline": _fit(phi={"value": None})}, "does not tell phi"),
        ({"baseline": _fit(law=dict.fromkeys(_fit()["law"]))}, "does not tell E, A"),
        ({"baseline": _fit(n_runs=6)}, "does not tell the noise"),
        ({"a": _fit(), "b": _fit()}, "it has a, b"),
        ({"a": {"phi": 1}}, "not the JSON of a fit"),
    ],
    ids=str,
)
def test_fits_that_cannot_be_planned_with(tmp_path, recipes, words):
    with pytest.raises(UserError) as caught:
        read_prior(_write(tmp_path / "fit.json", recipes), recipe="x")
    assert words in str(caught.value)
    assert "fit.json" in str(caught.value)


def test_no_such_file(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        read_prior(tmp_path / "nowhere.json", recipe="x")
