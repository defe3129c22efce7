"""The page in a browser: it loads in silence, its sliders move the law, its tables sort."""

import itertools
import json
import shutil

import numpy as np
import pytest

from looped.scaling.law import Law
from looped.scaling.quantity import quantity
from tests.report.browser import PROGRAM, Browser

pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="no Chromium on this machine (.ci/run installs Debian's)"
)

CURVES = """[...document.querySelectorAll("#explore-drawing .curve")].map(
    curve => [curve.dataset.r, curve.getAttribute("d")])"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def page(published_page, browser):
    browser.open(published_page)
    return browser


def curves(browser) -> dict[str, str]:
    return dict(browser.evaluate(CURVES))


def move(browser, slider: str, value: str) -> None:
    """What dragging does: a new value and an input event."""
    browser.evaluate(
        f"(() => {{ const slider = document.getElementById('{slider}'); slider.value = {value};"
        "slider.dispatchEvent(new Event('input')); })()"
    )


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 400])
def test_it_loads_in_silence(browser, published_page, width, dark):
    """Nothing on the console, nothing asked of any network, nothing wider than the window."""
    browser.open(published_page, width=width, dark=dark)
    assert browser.complaints() == []
    assert browser.requested() == [published_page.resolve().as_uri()]
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("document.querySelectorAll('#explore-drawing .curve').length") == 4


def test_the_console_is_heard(browser, tmp_path):
    """The silence above is no deafness: an exception and a forbidden request are complaints."""
    broken = tmp_path / "broken.html"
    broken.write_text("<script>nonsense()</script><img src='http://localhost:1/x.png'>")
    browser.open(broken)
    complaints = " ".join(browser.complaints())
    assert "nonsense" in complaints
    assert "http://localhost:1/x.png" in browser.requested()


def test_the_theme_is_the_readers(browser, published_page):
    """Dark ink on light paper and the other way round, in the figures too."""
    shades = {}
    for dark in (False, True):
        browser.open(published_page, dark=dark)
        shades[dark] = browser.evaluate(
            "[getComputedStyle(document.body).backgroundColor,"
            "getComputedStyle(document.querySelector('.picture svg text')).fill]"
        )
    (light_paper, light_ink), (dark_paper, dark_ink) = shades[False], shades[True]
    assert [light_paper, light_ink] == ["rgb(253, 253, 251)", "rgb(27, 28, 30)"]
    assert [dark_paper, dark_ink] == ["rgb(20, 22, 26)", "rgb(233, 232, 228)"]


def test_the_law_of_the_page_is_the_law(page):
    """JavaScript against looped.scaling.law, over six orders of magnitude, to 1e-9."""
    law = Law(E=1.567, A=28.28, alpha=0.1998, B=891.8, beta=0.3672, phi=0.4576)
    grid = [
        axis.ravel()
        for axis in np.meshgrid(
            [1, 2, 3, 8, 64], [0.0, 1e6, 3e9], [1.0, 4e7, 1e12], [1e5, 1e9, 1e13], [-1, 0, 0.46, 2]
        )
    ]
    points = np.stack(grid, axis=1)
    coefficients = {name: getattr(law, name) for name in ("E", "A", "alpha", "B", "beta")}
    found = page.evaluate(
        f"{json.dumps(points.tolist())}.map(([r, once, rec, tokens, phi]) =>"
        f" lawLoss({json.dumps(coefficients)}, phi, r, once, rec, tokens))"
    )
    expected = [
        float(Law(**coefficients, phi=phi).loss(r, once, n_rec=rec, tokens=tokens))
        for r, once, rec, tokens, phi in points
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_numbers_of_the_page_are_those_of_its_tables(page):
    """4.64e17 is written in one way only."""
    values = [4.64e17, 1e18, 67800356.0, 999.6, 250000.0, 1e15, 2.5e-4, 12.5]
    found = page.evaluate(f"{json.dumps(values)}.map(quantity)")
    assert found == [quantity(value) for value in values]


def test_phi_moves_the_looped_curves(page):
    """R = 1 stays where it is whatever phi; going back to the fit restores everything."""
    page.evaluate("document.getElementById('explore-reset').click()")
    fitted = curves(page)
    assert set(fitted) == {"1", "2", "4", "8"}
    move(page, "explore-phi", "30")
    moved = curves(page)
    assert moved["1"] == fitted["1"]
    assert all(moved[r] != fitted[r] for r in ("2", "4", "8"))
    reading = page.evaluate("document.getElementById('explore-reading').textContent")
    assert "at the fit" in reading
    page.evaluate("document.getElementById('explore-reset').click()")
    assert curves(page) == fitted


def test_compute_moves_every_curve_and_shows_its_runs(page):
    """At a measured budget its minima are solid and its runs are there; between, none are."""
    page.evaluate("document.getElementById('explore-reset').click()")
    before = curves(page)
    count = "document.querySelectorAll('#explore-drawing .{}').length".format
    move(page, "explore-level", "Math.log10(4.64e17)")
    after = curves(page)
    assert all(after[r] != before[r] for r in before)
    assert page.evaluate(count("minimum")) == 4
    assert page.evaluate(count("elsewhere")) == 20
    assert page.evaluate(count("run")) == 16
    move(page, "explore-level", "Math.log10(7e17)")
    assert (page.evaluate(count("minimum")), page.evaluate(count("run"))) == (0, 0)
    assert page.evaluate(count("elsewhere")) == 24


@pytest.mark.parametrize("width", [1200, 400])
@pytest.mark.parametrize("steps", [0, -30, 30])
def test_names_of_curves_stand_apart(browser, published_page, width, steps):
    """From each other, from every dot, and right of every curve; inside the drawing."""
    browser.open(published_page, width=width)
    move(browser, "explore-phi", str(steps))
    boxes = browser.evaluate(
        """[...document.querySelectorAll("#explore-drawing .name")].map(name => {
            const box = name.getBoundingClientRect();
            return [box.left, box.right, box.top, box.bottom];
        })"""
    )
    assert len(boxes) == 4
    boxes.sort(key=lambda box: box[2])
    for (_, _, _, bottom), (_, _, top, _) in itertools.pairwise(boxes):
        assert bottom <= top
    drawn = browser.evaluate(
        """Math.max(...[...document.querySelectorAll(
            "#explore-drawing .run, #explore-drawing .curve, #explore-drawing .minimum")]
            .map(mark => mark.getBoundingClientRect().right))"""
    )
    edge = browser.evaluate(
        "document.querySelector('#explore-drawing svg').getBoundingClientRect().right"
    )
    assert all(left >= drawn and right <= edge for left, right, _, _ in boxes)


def test_captions_of_tables_wrap(browser, published_page):
    """At 400 pixels, where the tables scroll: all of the caption is within the window."""
    browser.open(published_page, width=400)
    box = "document.querySelector('.short')"
    assert browser.evaluate(f"{box}.scrollWidth > {box}.clientWidth")
    rights = browser.evaluate(
        """[...document.querySelectorAll(".caption, caption")].map(caption => {
            const words = document.createRange();
            words.selectNodeContents(caption);
            return words.getBoundingClientRect().right;
        })"""
    )
    assert len(rights) == 3
    assert max(rights) <= 400
    shade = browser.evaluate(f"getComputedStyle({box}).backgroundAttachment")
    assert shade == "local, local, scroll, scroll"


def test_the_keyboard_moves_a_slider(page):
    """One step of an arrow key is a hundredth of phi, and is read aloud."""
    page.evaluate("document.getElementById('explore-reset').click()")
    fitted = curves(page)
    page.evaluate("document.getElementById('explore-phi').focus()")
    page.press("ArrowRight", 39)
    assert curves(page)["4"] != fitted["4"]
    spoken = page.evaluate("document.getElementById('explore-phi').getAttribute('aria-valuetext')")
    shown = page.evaluate("document.getElementById('explore-phi-value').textContent")
    assert spoken == shown == "0.47"


def test_another_recipe_brings_its_own_law(page):
    """Coefficients, budgets and minima change together."""
    choose = (
        "(() => {{ const choice = document.getElementById('explore-recipe');"
        "choice.value = '{}'; choice.dispatchEvent(new Event('change')); }})()"
    )
    baseline = curves(page)
    page.evaluate(choose.format("truncated"))
    stars = "document.querySelectorAll('#explore-drawing .minimum, #explore-drawing .elsewhere')"
    assert curves(page)["1"] != baseline["1"]
    assert page.evaluate(f"{stars}.length") < 24
    page.evaluate(choose.format("baseline"))
    assert page.evaluate(f"{stars}.length") == 24


def test_the_table_sorts_both_ways(page):
    """By number, not by text; the head says which way, and one head at a time."""
    column = (
        "[...document.querySelectorAll('#runs tbody tr')].map(row => +row.cells[{}].dataset.value)"
    )
    heads = page.evaluate(
        "[...document.querySelectorAll('#runs th')].map(head => head.textContent.trim())"
    )
    for name in ("tokens", "loss (nats)"):
        place = heads.index(name)
        click = f"document.querySelectorAll('#runs th button')[{place}].click()"
        page.evaluate(click)
        values = page.evaluate(column.format(place))
        assert values == sorted(values)
        assert len(values) == 177
        page.evaluate(click)
        assert page.evaluate(column.format(place)) == sorted(values, reverse=True)
        sorts = page.evaluate(
            "[...document.querySelectorAll('#runs th')].map(head => head.getAttribute('aria-sort'))"
        )
        assert [sort for sort in sorts if sort] == ["descending"]
        assert sorts[place] == "descending"


def test_cells_without_a_value_sort_last(page):
    """Up or down: what is not known is no smallest and no largest number."""
    found = page.evaluate(
        """(() => {
            const table = document.createElement("table");
            table.innerHTML = `<thead><tr><th>x</th></tr></thead><tbody>
                <tr><td data-value="2">2</td></tr><tr><td></td></tr>
                <tr><td data-value="10">10</td></tr></tbody>`;
            const read = () => [...table.tBodies[0].rows].map(row => row.textContent.trim());
            sortTable(table, 0, false);
            const up = read();
            sortTable(table, 0, true);
            return [up, read()];
        })()"""
    )
    assert found == [["2", "10", ""], ["10", "2", ""]]


def test_it_prints(browser, published_page, tmp_path):
    """A PDF of several sheets; controls stay on the screen."""
    browser.open(published_page, dark=True)
    browser.print(tmp_path / "page.pdf")
    pdf = (tmp_path / "page.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") >= 3
    browser.send("Emulation.setEmulatedMedia", media="print", features=[])
    shown = browser.evaluate(
        "[getComputedStyle(document.querySelector('.controls')).display,"
        "getComputedStyle(document.body).backgroundColor]"
    )
    browser.send("Emulation.setEmulatedMedia", media="")
    assert shown == ["none", "rgb(255, 255, 255)"]


def test_a_page_that_has_been_sent_needs_no_folder(browser, published_page, tmp_path):
    """One file is enough: the figures are in it."""
    alone = tmp_path / "mail.html"
    shutil.copy(published_page, alone)
    browser.open(alone)
    assert browser.complaints() == []
    assert browser.evaluate("document.querySelectorAll('.picture svg').length") == 13
