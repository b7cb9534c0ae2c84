# SPDX-License-Identifier: Apache-2.0
"""The report of an ordinary result: self-contained, honest, readable by all."""

import itertools
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.report.page import Page, words, written
from tests.report.synthetic import Synthetic

from tare.report import MARKDOWN, write
from tare.report.result import distributions
from tare.report.typesetting import typeset
from tare.samples.read.result import open_result
from tare.samples.read.result_folders import read_with_looks
from tare.samples.sql.group_numbers import settled

if TYPE_CHECKING:
    from tare.samples.sql.table import Table


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
    assert len(figures) == 28  # fourteen figures, each wide and narrow
    for attributes in figures:
        assert attributes["role"] in ("img", "group")
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


@pytest.mark.parametrize("span", ["request", "pay"])
def test_figures_leave_out_what_the_verdict_leaves_out(tmp_path: Path, span: str) -> None:
    folder = Synthetic(requests=2_000, blocks=3, invalid=(2,), warm_up=0.3, spans={"pay": 0.5})
    experiment, looks = read_with_looks(folder.write(tmp_path / "result"))
    result = open_result(tmp_path / "result")
    valid = [run.run for run in result.manifest.runs if run.valid]
    kept = distributions.kept(result, valid, span)
    assert kept is not None
    shown = settled(kept, looks.first)
    before, after = counts(kept), counts(shown)
    assert set(after) == set(valid)
    for run in experiment.runs:
        if run.valid and run.span == span:
            assert after[run.run] == run.answered < before[run.run] < 2_000
            first = distributions.first_requests(shown, run.run)
            assert np.median(first) == run.summaries["p50"]


def counts(samples: "Table") -> dict[int, int]:
    rows = samples.group_by("run").aggregate(n=samples.count()).rows()
    return {row["run"]: row["n"] for row in rows}


def test_only_requests_in_order_show_the_warm_up(tmp_path: Path) -> None:
    """For 30 % of each run requests take twice as long; the rest is close to its median."""
    folder = tmp_path / "result"
    _, page = written(Synthetic(requests=2_000, blocks=3, warm_up=0.3), folder)
    labels = [
        str(attributes.get("aria-label"))
        for tag, attributes in page.tags
        if tag == "svg"
        if "role" in attributes
    ]

    def found(beginning: str, numbers: str) -> list[tuple[float, float]]:
        (label,) = {label for label in labels if label.startswith(beginning)}
        pairs = re.findall(numbers, label.replace("\u00a0", " "))
        assert len(pairs) == 3
        return [(float(first), float(second)) for first, second in pairs]

    for median, third in found("Box plots", r"median (\S+) µs, quartiles \S+ µs and (\S+) µs"):
        assert third < 1.5 * median
    for median, ninth in found("Latency by percentile", r"p50 (\S+) µs, p90 (\S+) µs"):
        assert ninth < 1.5 * median
    (lag,) = {label for label in labels if label.startswith("Round trips")}
    kept = distributions.kept(open_result(folder), range(1, 10), "request")
    assert kept is not None
    drawn = {int(number) for number in re.findall(r"(?<= )\d+(?= requests)", lag)}
    assert drawn <= set(counts(kept).values())
