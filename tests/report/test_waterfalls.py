# SPDX-License-Identifier: Apache-2.0
"""Single requests in the report, as waterfalls of their spans."""

import re
from pathlib import Path
from statistics import median_low

import pytest
from tests.report.page import Page, written
from tests.report.traced import SHOP, Call, Traced

from tare.report.sections.waterfalls import MOST, ROWS
from tare.report.typesetting import NO_BREAK
from tare.samples.model import ROOT_QUANTILES as QUANTILES
from tare.samples.read.result_folders import read_with_looks

pytestmark = pytest.mark.usefixtures("one_layout")

MEBIBYTE = 1 << 20
ROOT = SHOP[0].name
TWO = {"old": 0.0, "new": 0.06}
Shown = tuple[Path, str, Page]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    folder = tmp_path_factory.mktemp("waterfalls") / "result"
    return folder, *written(
        Traced(effects=TWO, blocks=3, requests=120, clock_error_ns=8_000), folder
    )


def rows(html: str) -> list[str]:
    """The start tag of each row."""
    return re.findall(r'<(?:summary|li) class="row"[^>]*>', html)


def test_each_condition_has_a_request_at_each_metric(shop: Shown) -> None:
    _, html, _ = shop
    found = re.findall(r'<ul aria-label="([^"]*), spans of (\w+)">', html)
    assert found == [(f"{ROOT}, {metric}", name) for metric in QUANTILES for name in TWO]
    assert len(rows(html)) == len(QUANTILES) * len(TWO) * len(SHOP)


def test_a_request_is_of_the_median_run(shop: Shown) -> None:
    folder, html, _ = shop
    experiment, _ = read_with_looks(folder)
    shown = iter(re.findall(r"<p><b>(\w+)</b> (\S+)\sµs, run (\d+)</p>", html))
    for metric in QUANTILES:
        for condition in TWO:
            name, took, run = next(shown)
            mine = {
                experiment.traces[candidate.run, ROOT].quantiles[metric]: candidate.run
                for candidate in experiment.runs
                if (candidate.condition, candidate.span) == (condition, ROOT)
            }
            middle = median_low(mine)
            assert (name, int(run)) == (condition, mine[middle])
            assert float(took) == pytest.approx(middle / 1e3, rel=0.02)


def test_every_row_has_the_focus_of_the_keyboard_and_parents_fold(shop: Shown) -> None:
    _, html, page = shop
    for tag in rows(html):
        assert tag.startswith("<summary") or 'tabindex="0"' in tag
    parents = {span.parent for span in SHOP if span.parent is not None}
    folds = [tag for tag in rows(html) if tag.startswith("<summary")]
    assert len(folds) == len(QUANTILES) * len(TWO) * len(parents)
    assert not [
        attributes
        for _, attributes in page.tags
        if "role" in attributes and attributes["role"] == "tree"
    ]


def test_bars_are_where_their_spans_are(shop: Shown) -> None:
    _, html, _ = shop
    tag = r'<b class="(\w+)" style="left:([\d.]+)%;width:([\d.]+)%'
    bars = [(style, *map(float, place)) for style, *place in re.findall(tag, html)]
    # Of the slower condition, the root span is as long as the axis.
    second = bars[len(SHOP) : 2 * len(SHOP)]
    for (style, left, width), call in zip(second, SHOP, strict=True):
        assert (left, width) == pytest.approx((100 * call.begin, 100 * call.duration), abs=0.1)
        assert style == ("beside" if call.name == "order: audit" else "path")


def test_spans_shorter_than_the_clock_error_are_marked(shop: Shown) -> None:
    _, html, _ = shop
    mark = f"(±8.00{NO_BREAK}µs)"
    marked = re.findall(rf"<span>([^<]*)</span><i>.{{0,200}}</i><em>[^<]*{re.escape(mark)}", html)
    assert set(marked) == {"order: SELECT (client)"}


def test_an_unknown_clock_error_marks_nothing(tmp_path: Path) -> None:
    html, _ = written(Traced(effects=TWO, blocks=1, requests=50), tmp_path / "result")
    assert rows(html)
    assert "(±" not in html


@pytest.mark.exhaustive
def test_a_report_of_200_spans_per_request_is_small(tmp_path: Path) -> None:
    names = [Call(f"shop: operation {n} (server)", f"shop {n % 4}", 0, 0, 0) for n in range(20)]
    calls = [names[0]._replace(parent=None, duration=1.0)]
    calls += [
        names[n % 20]._replace(parent=(n - 1) // 4, begin=n / 1_000, duration=0.7 - n / 500)
        for n in range(1, 200)
    ]
    conditions = {f"c{number}": 0.01 * number for number in range(6)}
    folder = tmp_path / "result"
    html, _ = written(Traced(effects=conditions, blocks=1, requests=12, calls=calls), folder)
    assert len(html.encode()) < 3 * MEBIBYTE
    waterfalls = len(QUANTILES) * len(conditions)
    each = min(MOST, ROWS // waterfalls)
    assert len(rows(html)) == waterfalls * each
    assert html.count("more spans, shorter or deeper</li>") >= waterfalls
    hidden = re.findall(r">(\d+)\xa0more spans?,", html)
    assert sum(map(int, hidden)) == waterfalls * (200 - each)


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    evil = '</summary><script>alert(1)</script>"><img src=x onerror=alert(2)>\u202e'
    calls = [SHOP[0]._replace(service=evil), Call(evil, f"{evil} 2", 0, 0.2, 0.5)]
    folder = tmp_path / "result"
    html, page = written(Traced(effects=TWO, blocks=1, requests=30, calls=calls), folder)
    assert len(rows(html)) == len(QUANTILES) * 2 * 2
    assert not [tag for tag, _ in page.tags if tag in ("script", "img")]
    assert "\u202e" not in html


def test_traces_that_lack_a_span_are_shown_as_far_as_they_go(tmp_path: Path) -> None:
    made_up = Traced(effects=TWO, blocks=1, requests=30, without_parent=(3,))
    html, _ = written(made_up, tmp_path / "result")
    # Broken traces have no critical path, so there is nothing to choose a request by.
    assert not rows(html)
    assert "Single requests</dt><dd>the requests have no traces" in html
