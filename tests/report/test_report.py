# SPDX-License-Identifier: Apache-2.0
"""The report of an ordinary result: self-contained, honest, readable by all."""

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.report.page import Page, words, written
from tests.report.synthetic import Synthetic

from tare.report import MARKDOWN, distributions, write
from tare.report.words import typeset
from tare.samples import read_result
from tare.samples.result import open_result


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


def test_says_every_warning_once(usual: tuple[Path, str, Page]) -> None:
    folder, _, page = usual
    manifest = json.loads((folder / "manifest.json").read_text())
    verdicts = json.loads((folder / "verdicts.json").read_text())
    for warning in (*manifest["warnings"], *verdicts["warnings"]):
        assert page.text.count(typeset(warning)) == 1
        assert " ".join(warning.split()).replace("_", r"\_") in (folder / MARKDOWN).read_text()


def test_shows_invalid_runs_with_the_end_of_their_log(usual: tuple[Path, str, Page]) -> None:
    _, _, page = usual
    text = "".join(page.text)
    assert Synthetic().reason in text
    assert all(line in text for line in Synthetic().log_tail)


def test_every_figure_says_its_numbers(usual: tuple[Path, str, Page]) -> None:
    _, _, page = usual
    figures = [attributes for tag, attributes in page.tags if tag == "svg" and "role" in attributes]
    assert len(figures) == 22  # eleven figures, each wide and narrow
    for attributes in figures:
        assert attributes["role"] == "img"
        assert re.search(r"\d", attributes["aria-label"] or "")


def test_ids_are_unique_and_all_references_resolve(usual: tuple[Path, str, Page]) -> None:
    _, html, page = usual
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', html)) <= set(ids)


def test_headings_do_not_skip_a_level(usual: tuple[Path, str, Page]) -> None:
    _, _, page = usual
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))


def test_is_the_same_when_written_again(usual: tuple[Path, str, Page]) -> None:
    folder, html, _ = usual
    assert write(folder).read_text(encoding="utf-8") == html


def test_figures_leave_out_what_the_verdict_leaves_out(tmp_path: Path) -> None:
    folder = Synthetic(requests=2_000, blocks=3, invalid=(2,)).write(tmp_path / "result")
    result = open_result(folder)
    valid = [run["run"] for run in result.manifest["runs"] if run["valid"]]
    kept = distributions.kept(result, valid, "request")
    assert kept is not None
    shown = dict(kept.run.value_counts(name="n").execute().itertuples(index=False))
    assert set(shown) == set(valid)
    for run in read_result(folder).runs:
        if run.valid:
            assert shown[run.run] == run.answered < 2_000
            first = distributions.first_requests(kept, run.run)
            assert np.median(first) == run.summaries["p50"]
