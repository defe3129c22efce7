"""A reader of HTML that complains where a browser would guess."""

from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "link", "input", "br", "hr", "img"}


class Page(HTMLParser):
    """A page, read.

    Attributes:
        ids: how often each id occurs.
        links: every href that is not an anchor of the page.
        anchors: every href that is one, without its #.
        tags: how often each element occurs.
        text: what a reader sees, without scripts and styles.
        complaints: elements closed that were not open.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: Counter[str] = Counter()
        self.tags: Counter[str] = Counter()
        self.links: list[str] = []
        self.anchors: list[str] = []
        self.complaints: list[str] = []
        self._open: list[str] = []
        self._text: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        self.complaints += [f"{tag} is never closed" for tag in self._open]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self._text).split())

    def handle_starttag(self, tag, attributes):
        self._take(tag, dict(attributes))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self._take(tag, dict(attributes))

    def handle_endtag(self, tag):
        if not self._open or self._open[-1] != tag:
            self.complaints.append(f"{tag} closed inside {self._open[-1:]} at {self.getpos()}")
        else:
            self._open.pop()

    def handle_data(self, data):
        if not {"script", "style"} & set(self._open):
            self._text.append(data)

    def _take(self, tag, attributes):
        self.tags[tag] += 1
        if "id" in attributes:
            self.ids[attributes["id"]] += 1
        target = attributes.get("href") or attributes.get("xlink:href") or attributes.get("src")
        if target and target.startswith("#"):
            self.anchors.append(target[1:])
        elif target:
            self.links.append(target)
