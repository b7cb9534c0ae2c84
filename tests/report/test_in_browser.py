# SPDX-License-Identifier: Apache-2.0
"""The report in a real browser: nothing sticks out, dark is dark, the first screen is one."""

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
  const shown = e => e.getBoundingClientRect();
  o.textContent = JSON.stringify({{
    inner: w.innerWidth,
    scroll: root.scrollWidth,
    background: w.getComputedStyle(d.body).backgroundColor,
    second: shown(d.querySelector("main")).top,
    cards: shown(d.querySelector(".cards")).bottom,
    figures: [...d.querySelectorAll("figure svg")].filter(e => shown(e).width > 0)
      .map(e => e.getAttribute("class")),
    smallest: Math.min(...[...d.querySelectorAll("figure svg text")]
      .filter(e => shown(e).width > 0)
      .map(e => parseFloat(w.getComputedStyle(e).fontSize) * e.getScreenCTM().a)),
  }});
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
    assert found["second"] >= height, "the second screen shows on the first"
    assert found["cards"] <= height, "a card is below the first screen"
    assert set(found["figures"]) == {"wide" if width > 720 else "narrow"}
    assert found["smallest"] >= 11, "text in a figure is too small to read"


def test_follows_the_theme(report: Path) -> None:
    def brightness(*, dark: bool) -> int:
        colour = measured(report, 390, 844, dark=dark)["background"]
        return sum(int(part) for part in colour.removeprefix("rgb(").rstrip(")").split(","))

    assert brightness(dark=False) > 3 * 230
    assert brightness(dark=True) < 3 * 40
