"""`looped compare`, from the command line."""

import json

import pytest

from looped.cli import main
from looped.scaling.published import RUNS_FILE


def run(*arguments, capsys) -> tuple[int, str, str]:
    status = main(["compare", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_the_published_recipes_in_words(capsys, tmp_path):
    """Both phis, the difference with its interval, the loss beside it, the verdict."""
    target = tmp_path / "out.json"
    options = ("--published", "--resamples", "200", "--json", target)
    status, out, err = run("baseline", "truncated", *options, capsys=capsys)
    assert (status, err) == (0, "")
    assert "baseline: phi = 0.452  (80 runs, 16 cells)" in out
    assert "truncated: phi = 0.378  (81 runs, 16 cells)" in out
    assert "delta phi = -0.073  [" in out
    assert "4 shared cells of r = 1" in out
    assert "the best loss of truncated at equal budget is lower" in out
    content = json.loads(target.read_text())
    assert content["delta_phi"]["value"] == pytest.approx(-0.0733, abs=2e-3)
    low, high = content["delta_phi"]["ci"]
    assert low < content["delta_phi"]["value"] < high
    assert content["loss_difference"] < 0
    assert content["verdict"] in ("better", "worse", "not distinguishable")


def test_sources_follow_the_recipes(capsys):
    """The same from a file, JSON alone on standard output."""
    options = (RUNS_FILE, "--resamples", "50", "--json", "-")
    status, out, _ = run("truncated", "baseline", *options, capsys=capsys)
    assert status == 0
    assert json.loads(out)["delta_phi"]["value"] == pytest.approx(+0.0733, abs=2e-3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("baseline",), "the following arguments are required: B"),
        (("baseline", "truncated"), "no runs given"),
        (("baseline", "other", "--published"), "no run of recipe 'other'"),
        (("baseline", "baseline", "--published"), "cannot be compared with itself"),
        (("baseline", "truncated", "nowhere"), "nowhere: no such file"),
    ],
)
def test_mistakes_are_one_line_and_status_2(capsys, arguments, words):
    """What, where, what to do; no traceback."""
    status, out, err = run(*arguments, capsys=capsys)
    assert (status, out) == (2, "")
    assert err.startswith("looped compare: error: ")
    assert err.count("\n") == 1
    assert words in err
