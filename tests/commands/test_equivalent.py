"""`looped equivalent`, from the command line."""

import json

import pytest

from looped.cli import main
from looped.commands.equivalent import parse_size, show


def run(*arguments, capsys) -> tuple[int, str, str]:
    status = main(["equivalent", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_a_size_and_a_phi_need_no_runs(capsys):
    """The headline example: 410M at r = 4 is worth about 580M and costs about 1B."""
    options = ("--recurrences", 4, "--size", "410M", "--phi", 0.46)
    status, out, err = run(*options, capsys=capsys)
    assert (status, err) == (0, "")
    assert "looped      410M parameters, r = 4" in out
    assert "equal loss  589M plain" in out
    assert "equal cost  1.03B plain" in out


def test_a_fit_gives_the_interval_and_the_allocation(capsys, tmp_path):
    """The interval of phi carries over to the equal-loss size; a budget is allocated by the law."""
    target = tmp_path / "out.json"
    options = ("--recurrences", 4, "--size", "410M", "--budget", "1e20", "--published")
    status, out, _ = run(*options, "--json", target, capsys=capsys)
    assert status == 0
    assert "best use of 1e+20 FLOPs" in out
    content = json.loads(target.read_text())
    low, high = content["equal_loss_ci"]
    assert low < content["equivalent"]["equal_loss"] < high
    assert content["equivalent"]["phi"] == pytest.approx(0.4576, abs=2e-3)
    looped, plain = content["allocation"], content["plain_allocation"]
    assert (looped["recurrences"], plain["recurrences"]) == (4, 1)
    # The published optima at 2.15e19 are 306M and 545M; at 1e20 both are larger.
    assert 306e6 < looped["n_total"] < plain["n_total"]
    assert plain["loss"] < looped["loss"] < 2.3599


def test_the_best_losses_are_near_the_published_ones(capsys):
    """At 2.15e19 FLOPs the law's best losses are the published minima to 0.015 nats.

    Not so N*: the valley is flat, and the law of all runs places it up to twice as high as the
    parabolas of single cells do.
    """
    options = ("--recurrences", 4, "--budget", "2.15e19", "--published", "--json", "-")
    _, out, _ = run(*options, capsys=capsys)
    found = json.loads(out)
    assert found["allocation"]["loss"] == pytest.approx(2.359908, abs=0.015)
    assert found["plain_allocation"]["loss"] == pytest.approx(2.308794, abs=0.015)
    assert 305815135 / 2 < found["allocation"]["n_total"] < 305815135 * 2
    assert 544939137 / 2 < found["plain_allocation"]["n_total"] < 544939137 * 2


def test_sizes_are_read_and_shown():
    """Units are powers of ten and rounding never says 1000M."""
    sizes = {"410M": 410e6, "1.3B": 1.3e9, "580e6": 580e6, "12k": 12e3, "7": 7.0}
    for text, size in sizes.items():
        assert parse_size(text) == pytest.approx(size)
    assert [show(n) for n in (410e6, 1.0346e9, 999.9e6, 12e3, 7)] == [
        *("410M", "1.03B", "1B", "12k", "7")
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--size", "1M", "--phi", "0.5"), "required: --recurrences"),
        (("--recurrences", "4", "--phi", "0.5"), "give --size, --budget or both"),
        (("--recurrences", "4", "--size", "big", "--phi", "0.5"), "size 'big': write it as 410M"),
        (("--recurrences", "4", "--size", "1.2.3M", "--phi", "0.5"), "size '1.2.3M'"),
        (("--recurrences", "3", "--size", "1M", "--phi", "0.5"), "cannot be 3 passes"),
        (("--recurrences", "4", "--size", "1M", "--layout", "2", "--phi", "1"), "layout '2'"),
        (("--recurrences", "4", "--size", "1M"), "no runs given"),
        (("--recurrences", "4", "--size", "1M", "--phi", "1", "--published"), "leave out the runs"),
        (("--recurrences", "4", "--size", "1M", "--phi", "nan"), "--phi nan is not between -2"),
        (("--recurrences", "4", "--size", "1M", "--phi", "1e9"), "--phi 1e+09 is not between -2"),
        (("--recurrences", "4", "--size", "1M", "--phi", "1", "--fix", "phi=2"), "leave out --fix"),
        (("--recurrences", "4", "--size", "1M", "--phi", "1", "--recipe", "a"), "out --recipe"),
        (("--recurrences", "4", "--size", "1M", "--phi", "1", "--json", "no/a"), "no directory no"),
        (("--recurrences", "4", "--budget", "1e19", "--phi", "0.5"), "needs a fitted law"),
        (("--recurrences", "4", "--budget", "0", "--published"), "budget 0 is not positive"),
    ],
)
def test_mistakes_are_one_line_and_status_2(capsys, arguments, words):
    """What, where, what to do; no traceback."""
    status, out, err = run(*arguments, capsys=capsys)
    assert (status, out) == (2, "")
    assert err.startswith("looped equivalent: error: ")
    assert err.count("\n") == 1
    assert words in err
