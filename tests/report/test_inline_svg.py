"""A figure inside the page."""

import re
import xml.etree.ElementTree as ET

import pytest

from looped.report.inline_svg import THEME, inline_svg
from looped.scaling import fit_law
from looped.scaling.figure_style import PAPER, palette_of
from looped.scaling.figures import isoflop_figure, save
from tests.scaling.grids import published


@pytest.fixture(scope="module")
def svg(tmp_path_factory) -> str:
    fit = fit_law(published("baseline"), polish=1)
    figure = isoflop_figure(fit, palette=palette_of([1, 2, 4, 8]))
    path = tmp_path_factory.mktemp("svg") / "figure.svg"
    save(figure, path)
    return str(inline_svg(path.read_text(), name="some-name"))


def test_it_is_one_element_of_the_page(svg):
    """Well formed, without a size of its own, read aloud by the heading of its figure."""
    root = ET.fromstring(svg.replace("xlink:href", "href"))
    assert root.tag == "svg"
    assert "width" not in root.attrib
    assert root.attrib["aria-labelledby"] == "some-name-heading"


def test_its_ids_are_its_own(svg):
    """Every figure of matplotlib has an axes_1: references would end in another figure."""
    ids = re.findall(r' id="([^"]*)"', svg)
    assert ids
    assert len(set(ids)) == len(ids)
    assert all(name.startswith("some-name-") for name in ids)
    targets = re.findall(r'(?:url\(|href=")#([^")]*)', svg)
    assert targets
    assert set(targets) <= set(ids)


def test_it_takes_the_theme_of_the_page(svg):
    """No ink, grid or paper of the light figure is left, and no style that would reach the page."""
    assert not re.search("|".join(THEME), svg, flags=re.IGNORECASE)
    assert "var(--ink)" in svg
    assert "var(--rule)" in svg
    assert PAPER not in svg
    assert "<style" not in svg


def test_its_text_is_kept(svg):
    """Coordinates lose digits that nobody sees; numbers that are read do not."""
    drawn = '<svg viewBox="0 0 1 1"><path d="M 0.123456 9.876543"/><text>0.123456</text></svg>'
    found = inline_svg(drawn, name="x")
    assert "M 0.12 9.87" in found
    assert ">0.123456<" in found
    assert ">10M<" in svg
