"""A figure as an SVG element that stands in the page and takes the colours of its theme."""

import re

from markupsafe import Markup

from looped.scaling.figure_style import INK, MUTED, PAPER, RULE

THEME = {INK: "--ink", MUTED: "--muted", RULE: "--rule", PAPER: "--paper"}
"""Colours of the figures, and the custom properties of the page in their place."""


def inline_svg(drawn: str, *, name: str) -> Markup:
    """Make an element of the page from a file.

    Args:
        drawn: by matplotlib, in `figure_style`.
        name: of ASCII letters, digits and hyphens; unique on the page, since ids begin with it.
            The element with the id `NAME-heading` says what the figure shows.
    """
    svg = drawn[drawn.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)  # would style the page too
    svg = re.sub(r' id="', f' id="{name}-', svg)
    svg = re.sub(r"url\(#", f"url(#{name}-", svg)
    svg = re.sub(r'href="#', f'href="#{name}-', svg)
    svg = re.sub(r"<[^>]+>", _shortened, svg)
    for colour, variable in THEME.items():
        svg = re.sub(colour, f"var({variable})", svg, flags=re.IGNORECASE)
    opening = re.match(r"<svg[^>]*>", svg)
    assert opening is not None
    box = re.search(r'viewBox="[^"]*"', opening[0])
    assert box is not None
    label = f'role="img" aria-labelledby="{name}-heading"'
    return Markup(f"<svg {box[0]} {label}>" + svg[opening.end() :])


def _shortened(tag: re.Match[str]) -> str:
    """A tag with coordinates to a hundredth of a point; text is data and stands between tags."""
    return re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0])
