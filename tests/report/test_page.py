"""The page as a file: whole, self-contained, and there for runs of every kind."""

import re

import numpy as np
import pandas as pd
import pytest

from looped.cli import main
from looped.report.page import typeset
from looped.scaling import fit_law
from looped.scaling.seed_noise import seed_noise
from tests.report.html_check import Page
from tests.scaling.grids import published, synthetic
from tests.scaling.records import record_of, write_run
from tests.scaling.test_runs import ROWS

COLUMNS = ["recurrences", "n_once", "n_rec", "tokens", "loss", "width"]
QUICK = ("--estimator=least_squares", "--resamples=10")


def report(tmp_path, *sources, options=()):
    out = tmp_path / "report"
    assert main(["report", *map(str, sources), f"--out={out}", *QUICK, *options]) == 0
    return out


def of_table(tmp_path, table, *, columns=(), options=()):
    source = tmp_path / "runs.csv"
    table[[*COLUMNS, *columns]].to_csv(source, index=False)
    return report(tmp_path, source, options=options)


def sound(out) -> Page:
    """Read a page and hold what must be true of every one."""
    page = Page(out / "index.html")
    assert page.complaints == []
    assert [name for name, number in page.ids.items() if number > 1] == []
    assert set(page.anchors) <= set(page.ids)
    assert not [link for link in page.links if "//" in link]
    for link in page.links:
        if link != "data:,":
            assert (out / link).is_file(), link
    assert page.tags["h1"] == 1
    return page


def test_what_a_comparison_warns_of_is_on_the_page(tmp_path):
    """Seeds that one recipe lacks were told by `looped compare` alone."""
    grid = synthetic(noise=0.003, widths=(512, 768, 1024)).assign(recipe="baseline", seed=0)
    looped = grid[grid["recurrences"] > 1]
    table = pd.concat([grid, looped.assign(seed=1), looped.assign(recipe="new")])
    page = of_table(tmp_path, table, columns=["recipe", "seed"]) / "index.html"
    assert page.read_text().count("baseline has looped runs of seed 1, new has none") == 1


def test_the_page_is_whole_and_self_contained(published_page):
    """Elements closed, ids unique, anchors met, nothing fetched, every figure a file beside it."""
    page = sound(published_page.parent)
    content = published_page.read_text()
    assert not re.search(r"https?://(?!www\.w3\.org)", content)  # names of XML spaces are no links
    figures = sorted(path.name for path in (published_page.parent / "figures").iterdir())
    kinds = ("compute-optimal", "effective-size", "isoflop", "phi", "residuals")
    names = [f"{recipe}-{kind}" for recipe in ("baseline", "truncated") for kind in kinds]
    names += ["recipes", "worth", "loss-gap"]
    assert figures == sorted(f"{name}.{form}" for name in names for form in ("svg", "png"))
    assert page.tags["svg"] == len(names)


def test_chance_between_seeds_stands_beside_the_residual(tmp_path):
    """With the test whether the law misses by more."""
    grids = [synthetic(noise=0.01, seed=seed).assign(seed=seed) for seed in (0, 1)]
    table = pd.concat(grids, ignore_index=True)
    found = seed_noise(fit_law(table, estimator="least_squares"))
    text = sound(of_table(tmp_path, table, columns=["seed"])).text
    assert f"between seeds (nats) {found.noise:.4f}" in text
    assert f"p that the law misses no more {found.p:.1g}" in text


def test_the_answer_stands_on_top(published_page):
    """Before anything else, with its interval and runs; as in the description of the page."""
    text = Page(published_page).text
    assert "One recurrence is worth r 0.46 : at r = 4 the shared block counts as 1.9 blocks" in text
    assert text.index("One recurrence") < text.index("Another")
    assert "116 runs." in text
    assert 'content="One recurrence is worth r^0.46: at r = 4' in published_page.read_text()


def test_every_part_of_the_report_is_there(published_page):
    """The parts that the issue lists, each by words of its own."""
    text = Page(published_page).text
    for part in (
        *("Loss at equal budget", "All recurrence counts on one curve?", "How sure is"),
        *("What the law leaves unexplained", "The worth of each recurrence count"),
        *("The best loss that compute buys", "Recipes side by side", "slice and not a refit"),
        *(
            "so it may differ from the factor",
            "177 runs",
            "Left out: 1",
            "How it was made",
            "looped report ",
        ),
    ):
        assert part in text, part
    assert "bad/run.json" in text
    assert "the record lacks" in text


def test_change_and_verdict_of_the_second_recipe(published_page):
    """Truncation lowers the loss; whether the loop got worse these runs cannot tell."""
    text = Page(published_page).text
    assert "the best loss of truncated at equal budget is lower" in text
    assert "change in \u03c6" in text


def test_training_curves_of_run_directories(tmp_path):
    """One with a curve, one without; an unreadable one is left out and stops nothing."""
    for place, row in enumerate(ROWS[:2]):
        home = write_run(tmp_path / "runs" / str(place), record_of(row))
    (home / "metrics.csv").write_text("step,train_flops,train_loss\n1,1e3,4\n2,2e3,3\n")
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "run.json").write_text("{")
    out = report(tmp_path, tmp_path / "runs")
    page = sound(out)
    assert "Training curves" in page.text
    assert "Without a training curve: 1 run " in page.text
    assert "Left out: 1" in page.text
    assert "cannot tell what a recurrence is worth" in page.text
    for fact in ("paper (2 runs)", "abc (2 runs)", "bpe-512 (2 runs)"):
        assert fact in page.text


def test_few_runs_still_give_a_page(tmp_path):
    """It says that they cannot tell, and why; no slider without a law."""
    page = sound(of_table(tmp_path, synthetic().iloc[:3]))
    assert "These 3 runs cannot tell what a recurrence is worth." in page.text
    assert "Another" not in page.text
    assert "explorer" not in page.ids


def odd_tables():
    runs = synthetic(noise=0.003)
    many = synthetic(
        noise=0.003, budgets=tuple(np.geomspace(1e17, 1e20, 14)), widths=(512, 768, 1024)
    )
    return {
        "one run": runs.head(1),
        "plain runs only": runs[runs["recurrences"] == 1],
        "looped runs only": runs[runs["recurrences"] > 1],
        "equal losses": runs.assign(loss=3.0),
        "more levels than panels": many,
        "one size of each count": runs[runs["width"] == 768],
        "unusual counts": runs[runs["recurrences"] < 8].replace({"recurrences": {2: 5, 4: 7}}),
        "equal tokens": synthetic(noise=0.003, token_counts=(1e9, 2e9)),
    }


@pytest.mark.parametrize("kind", odd_tables())
def test_runs_of_every_kind_give_a_page(tmp_path, kind):
    """None may end in a traceback, nor in a page that is not whole."""
    page = sound(of_table(tmp_path, odd_tables()[kind]))
    assert "How it was made" in page.text


@pytest.mark.parametrize("by", ["tokens", "flops"])
def test_the_explorer_describes_what_it_draws(tmp_path, by):
    """No rings, stars or budgets where runs share token counts: none of them is drawn."""
    if by == "tokens":
        out = of_table(tmp_path, synthetic(noise=0.003, token_counts=(1e9, 2e9)))
    else:
        out = of_table(tmp_path, published("baseline"), columns=["budget_flops"])
    text = sound(out).text
    assert "Lines: the law." in text
    for words in ("Rings: its own minima.", "Stars: the measured ones", "another budget"):
        assert (words in text) == (by == "flops"), words
    for words in ("Dots: the runs of the chosen token count", "another token count"):
        assert (words in text) == (by == "tokens"), words


def test_names_are_text(tmp_path):
    """A recipe may be called anything: it is no markup, and shares no file or id."""
    runs = published("baseline", budgets_below=2e18)
    names = ['<b>&"', "_b_"]  # both would like files called _b_
    table = pd.concat([runs.assign(recipe=name) for name in names])
    out = of_table(tmp_path, table, columns=["recipe", "budget_flops"])
    page = sound(out)
    assert '<b>&"' in page.text
    assert page.tags["b"] == 0
    figures = [path.name for path in (out / "figures").glob("*-isoflop.svg")]
    assert sorted(figures) == ["_b_-2-isoflop.svg", "_b_-isoflop.svg"]


def test_recipes_without_a_common_budget_are_not_compared(tmp_path):
    """The page says why instead of ending."""
    runs = published("baseline")
    low = runs[runs["budget_flops"] < 2e18].assign(recipe="baseline")
    high = runs[runs["budget_flops"] > 4e18].assign(recipe="other")
    out = of_table(tmp_path, pd.concat([low, high]), columns=["recipe", "budget_flops"])
    assert "Not compared: recipes 'baseline' and 'other' have no budget" in sound(out).text


def test_a_held_phi_is_said_to_be_held(tmp_path):
    """It has no interval and no figure of its own."""
    page = sound(of_table(tmp_path, synthetic(), options=["--fix=phi=0.5"]))
    assert "A recurrence was taken to be worth r 0.50 , not measured" in page.text
    assert "How sure is" not in page.text


def test_sentences_of_the_terminal_are_typeset():
    """Powers raised, options in one piece, and nothing of the text taken for markup."""
    assert typeset("grows as r^0.657 (p < 1)") == (
        "grows as <var>r</var><sup>0.657</sup> (p &lt; 1)"
    )
    assert typeset("; --delta 0.006") == '; <code class="unbroken">--delta</code> 0.006'
    assert typeset("-0.22 to 1.3 of run-3, 2e-5, r^-0.5") == (
        "\u22120.22 to 1.3 of run-3, 2e-5, <var>r</var><sup>\u22120.5</sup>"
    )
