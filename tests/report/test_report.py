# SPDX-License-Identifier: Apache-2.0
"""The report of made-up results: self-contained, small, honest, safe."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.report.synthetic import Synthetic

from tare.report import write

VOID = {"meta", "br", "hr", "img", "link", "input"}
MEBIBYTE = 1 << 20


class Page(HTMLParser):
    """Checks that tags are balanced, and keeps the text of the first screen and of all."""

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
        if "header" in self.open:
            self.first_screen.append(data)


def words(page: Page) -> list[str]:
    return " ".join(page.first_screen).split()


def written(made_up: Synthetic, folder: Path) -> tuple[str, Page]:
    html = write(made_up.write(folder)).read_text(encoding="utf-8")
    return html, Page(html)


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, Page]:
    folder = tmp_path_factory.mktemp("report") / "usual"
    return folder, *written(Synthetic(requests=4_000), folder)


def test_loads_nothing(usual: tuple[Path, str, Page]) -> None:
    _, html, page = usual
    assert not [tag for tag, _ in page.tags if tag in ("script", "link", "iframe", "object")]
    for tag, attributes in page.tags:
        for name in ("src", "href", "xlink:href", "data", "action"):
            target = attributes.get(name) or ""
            assert target == "" or target.startswith(("#", "data:image/png;")), (tag, target)
    assert not re.search(r"@import|url\((?!#)", html)
    assert "default-src 'none'" in html


def test_first_screen_is_short_and_has_no_p_value(usual: tuple[Path, str, Page]) -> None:
    _, _, page = usual
    shown = words(page)
    assert 20 <= len(shown) <= 120
    assert not re.search(r"\bp\s*[=<>]", " ".join(shown))
    assert {"hook", "twin", "slower", "unchanged"} <= set(shown)
