# SPDX-License-Identifier: Apache-2.0
"""The report in a real browser: it fits, folds, follows the theme, and shows values on demand."""

import json
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from tests.report.browser import CHROMIUM, browse
from tests.report.synthetic import Synthetic

from tare.report import write

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")

# The report itself runs no script: a page around it measures it in a frame of the given size.
AROUND = """<iframe id=f width={width} height={height} style="border:0"></iframe><pre id=o></pre>
<script>
f.onload = () => {{
  const d = f.contentDocument, w = f.contentWindow, root = d.documentElement;
  const at = e => (typeof e === "string" ? d.querySelector(e) : e).getBoundingClientRect();
  const all = q => [...d.querySelectorAll(q)], shown = e => at(e).width > 0;
  const text = e => e.textContent.trim();
  const found = {{
    inner: w.innerWidth,
    scroll: root.scrollWidth,
    background: w.getComputedStyle(d.body).backgroundColor,
    header: at("header").bottom,
    more: [at(".more").top, at(".more").bottom],
    values: at(".values").bottom,
    picture: Math.max(...all(".card figure").filter(shown).map(e => at(e).bottom)),
    folded: root.scrollHeight,
    menu: all("nav a").map(text),
    headings: all("details.section h3").map(text),
  }};
  w.onhashchange = () => {{
    found.opened = d.querySelector("#power").closest("details").open;
    for (const section of all("details")) section.open = true;
    const inside = e => {{
      const svg = at(e.closest("svg")), box = at(e);
      return box.left >= svg.left - 1 && box.right <= svg.right + 1;
    }};
    const values = all(".value").filter(e => shown(e.querySelector("circle")));
    values.slice(0, 3).forEach(value => {{
      value.focus();
      const hidden = e => w.getComputedStyle(e.querySelector("text")).visibility === "hidden";
      const seen = values.filter(e => !hidden(e));
      found.focused = (found.focused ?? true) && seen.length === 1 && seen[0] === value;
    }});
    o.textContent = JSON.stringify({{
      ...found,
      unfolded: root.scrollWidth,
      clipped: all(".scroll").filter(e => e.scrollWidth > e.clientWidth)
        .map(e => e.getAttribute("aria-label")),
      wide: all("table").filter(e => at(e).right > w.innerWidth).length,
      figures: all("figure svg").filter(shown).map(e => e.getAttribute("class")),
      outside: all("figure svg text").filter(shown).filter(e => !inside(e)).map(text),
      values: found.values,
      named: values.length,
      smallest: Math.min(...all("figure svg text").filter(shown)
        .map(e => parseFloat(w.getComputedStyle(e).fontSize) * e.getScreenCTM().a)),
    }});
  }};
  w.location.hash = "#power";
}};
f.src = {page};
</script>"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser") / "result"
    long = "a-condition-whose-name-goes-on-and-on-without-any-place-to-break-it"
    effects = {"plain": 0.0, "hook": 0.06, long: 0.0}
    return write(Synthetic(effects=effects, requests=2_000, name=long).write(folder))


def measured(report: Path, width: int, height: int, *, dark: bool = False) -> dict[str, Any]:
    around = report.parent / f"around-{width}-{dark}.html"
    page = json.dumps(report.name)
    around.write_text(AROUND.format(width=width, height=height, page=page))
    shown = browse(around, "--dump-dom", dark=dark)
    start = shown.index('<pre id="o">') + len('<pre id="o">')
    found: dict[str, Any] = json.loads(unescape(shown[start : shown.index("</pre>", start)]))
    return found


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_fits_the_screen(report: Path, width: int, height: int) -> None:
    found = measured(report, width, height)
    assert found["inner"] == width
    assert found["scroll"] <= width
    assert found["unfolded"] <= width
    assert found["values"] <= height, "both values are on the first screen"
    assert 0 <= found["more"][0] < found["more"][1] <= height, "a sign that more follows"
    if width == 1280:
        assert found["picture"] <= height, "both distributions are on the first screen"
        assert found["folded"] - found["header"] <= 6_000
    assert set(found["figures"]) == {"wide" if width > 720 else "narrow"}
    assert found["smallest"] >= 11, "text in a figure is too small to read"
    assert not found["outside"], "text is cut off at the edge of a figure"
    assert not found["clipped"], "a table is wider than its place"
    assert found["wide"] == 0


def test_menu_opens_the_sections_that_it_names(report: Path) -> None:
    found = measured(report, 1280, 800)
    assert found["menu"] == found["headings"]
    assert len(found["menu"]) >= 18
    assert found["opened"], "a link of the menu opens its section"


def test_values_show_with_the_focus_of_the_keyboard(report: Path) -> None:
    found = measured(report, 1280, 800)
    assert found["named"] > 50
    assert found["focused"]


def test_follows_the_theme(report: Path) -> None:
    def brightness(*, dark: bool) -> int:
        colour = measured(report, 390, 844, dark=dark)["background"]
        return sum(int(part) for part in colour.removeprefix("rgb(").rstrip(")").split(","))

    assert brightness(dark=False) > 3 * 230
    assert brightness(dark=True) < 3 * 40
