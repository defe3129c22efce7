"""`looped report`, from the command line."""

import subprocess
import sys

import pytest

from looped.cli import main
from looped.errors import UserError
from looped.scaling.published import RUNS_FILE
from tests.report.html_check import Page
from tests.scaling.grids import synthetic

QUICK = ("--estimator=least_squares", "--resamples=10")


@pytest.fixture
def few(tmp_path):
    """A table of runs so few that the page is made in a second."""
    source = tmp_path / "few.csv"
    synthetic().iloc[:3].to_csv(source, index=False)
    return source


def run(*arguments, capsys) -> tuple[int, str, str]:
    status = main(["report", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_the_terminal_says_the_answer_and_where_the_page_is(few, tmp_path, capsys):
    """One line for each recipe, one for the page."""
    out = tmp_path / "page"
    status, text, err = run(few, "--out", out, *QUICK, capsys=capsys)
    assert (status, err) == (0, "")
    assert text.splitlines() == [
        "baseline: These 3 runs cannot tell what a recurrence is worth.",
        f"page     {out / 'index.html'}",
    ]


def test_the_page_says_how_it_was_made(few, tmp_path, capsys):
    """The command as it was typed, quotes and all, and the choices of the fit."""
    out = tmp_path / "a page"
    run(few, "--out", out, "--fix=E=1", *QUICK, capsys=capsys)
    text = Page(out / "index.html").text
    assert f"looped report {few} --out '{out}' --fix=E=1 --estimator=least_squares" in text
    assert "least squares, E held at 1, interval of phi: delete-a-cell jackknife" in text
    assert "looped 0." in text
    assert "numpy 2" in text


def test_recipes_are_chosen_and_ordered(tmp_path, capsys):
    """--against comes first, the others are compared with it; --recipe leaves recipes out."""
    status, text, _ = run(
        *(RUNS_FILE, "--against", "truncated", "--out", tmp_path / "a", *QUICK), capsys=capsys
    )
    assert status == 0
    assert [line.split(":")[0] for line in text.splitlines()[:2]] == ["truncated", "baseline"]
    assert "Compared with truncated" in Page(tmp_path / "a" / "index.html").text
    status, text, _ = run(
        *(RUNS_FILE, "--recipe", "baseline", "--out", tmp_path / "b", *QUICK), capsys=capsys
    )
    assert status == 0
    page = Page(tmp_path / "b" / "index.html")
    assert "recipes" not in page.ids
    assert "177 runs" in page.text  # all that was read stays in the table


def test_a_page_is_replaced_and_nothing_else_is(few, tmp_path, capsys):
    """A page of ours is made anew; an index.html of anybody else stays as it is."""
    out = tmp_path / "site"
    assert run(few, "--out", out, *QUICK, capsys=capsys)[0] == 0
    assert run(few, "--out", out, *QUICK, capsys=capsys)[0] == 0
    (out / "index.html").write_text("<p>mine")
    status, text, err = run(few, "--out", out, *QUICK, capsys=capsys)
    assert (status, text) == (2, "")
    assert err == (
        f"looped report: error: {out / 'index.html'} is not a page of looped report: "
        "choose another --out\n"
    )
    assert (out / "index.html").read_text() == "<p>mine"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "no runs given"),
        (("nowhere/",), "nowhere"),
        ((RUNS_FILE, "--against", "bess"), "--against bess: no such recipe on this page: baseline"),
        ((RUNS_FILE, "--recipe", "bess"), "no run of recipe 'bess'"),
        ((RUNS_FILE, "--level", "2"), "level 2.0 is not between 0 and 1"),
        ((RUNS_FILE, "--fix", "q=1"), "cannot fix 'q'"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(arguments, says, tmp_path, capsys, monkeypatch):
    """Before anything is drawn."""
    monkeypatch.chdir(tmp_path)
    status, out, err = run(*arguments, *QUICK, capsys=capsys)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert says in err
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written(few, tmp_path, capsys):
    """A file where the directory should be."""
    status, _, err = run(few, "--out", few, *QUICK, capsys=capsys)
    assert status == 2
    assert f"--out {few} cannot be written" in err


def test_help_and_page_need_neither_torch_nor_lightning():
    """A page is made where nothing is trained; --help draws nothing."""
    program = (
        "import sys\n"
        "from looped.cli import main\n"
        "try:\n    main(['report', '--help'])\nexcept SystemExit:\n    pass\n"
        "assert not {'numpy', 'matplotlib', 'jinja2'} & set(sys.modules)\n"
        "import looped.report.page\n"
        "assert not {'torch', 'lightning'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "looped report runs/" in done.stdout


def test_recipes_are_compared_as_they_were_fitted(tmp_path, monkeypatch, capsys):
    """What --fix holds in the fits of the page is held in its comparison too."""
    held = []

    def refuse(*arguments, fix, **others):
        held.append(fix)
        raise UserError("not compared here")

    monkeypatch.setattr("looped.scaling.compare.compare", refuse)
    out = tmp_path / "page"
    assert run(RUNS_FILE, "--out", out, "--fix=E=1.5", *QUICK, capsys=capsys)[0] == 0
    assert held == [{"E": 1.5}]
