# SPDX-License-Identifier: Apache-2.0
"""Reads a written report as a browser would, and complains about tags out of balance."""

from html.parser import HTMLParser
from pathlib import Path

from tests.report.synthetic import Synthetic

from tare.report import write

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(HTMLParser):
    """Checks that tags are balanced, and keeps the text of all and of the first screen."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.first_screen: list[str] = []
        self.text: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open or "title" in self.open:
            return
        self.text.append(data)
        if "header" in self.open and "figure" not in self.open:
            self.first_screen.append(data)


def words(page: Page) -> list[str]:
    return " ".join(page.first_screen).split()


def written(made_up: Synthetic, folder: Path) -> tuple[str, Page]:
    html = write(made_up.write(folder)).read_text(encoding="utf-8")
    return html, Page(html)
