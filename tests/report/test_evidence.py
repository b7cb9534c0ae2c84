# SPDX-License-Identifier: Apache-2.0
"""The numbers below the first screen that a reader can disagree by."""

import json
import re
from math import expm1, log1p
from pathlib import Path
from typing import Any

import pytest
from tests.report.page import Page, words, written
from tests.report.synthetic import Synthetic

from tare.report import MARKDOWN, write
from tare.report.page.markdown import cell
from tare.report.result.result import read
from tare.report.sections import power
from tare.report.sections.distances import TOLD
from tare.report.typesetting import interval, metric, p_value, percent, typeset
from tare.samples.describe import controls
from tare.stats.power import Design
from tare.verdict.judgement import Control

SPANS = ("request", "pay")
NEW = ("spans", "numbers", "shift", "distances", "warm-up", "power", "control", "calibration")


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, Page]:
    """Two spans, a control, and a warm-up of a tenth of each run."""
    folder = tmp_path_factory.mktemp("evidence") / "usual"
    made_up = Synthetic(
        requests=2_000,
        blocks=9,
        control=True,
        warm_up=0.1,
        spans={"pay": 0.5},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder.parent / "state"))
        controls.remember("another", [Control("host", 8, "p50", 0.1, 0.001, True)])
        return folder, *written(made_up, folder)


def sections(page: Page) -> list[str]:
    return [str(attributes["id"]) for tag, attributes in page.tags if tag == "section"]


def labels(page: Page, beginning: str) -> list[str]:
    """The labels of the wide figures of one kind."""
    found = [
        str(attributes.get("aria-label"))
        for tag, attributes in page.tags
        if tag == "svg"
        if "role" in attributes
    ]
    return [label for label in found[::2] if label.startswith(beginning)]


def rows(folder: Path, heading: str, table: str = "") -> list[list[str]]:
    """The cells of a section's tables in the Markdown report, or of one, without their heads."""
    _, _, section = (folder / MARKDOWN).read_text().partition(f"## {heading}\n")
    text, _, _ = section.partition("\n## ")
    if table:
        _, _, text = text.partition(f"\n### {table}\n")
        text, _, _ = text.partition("\n### ")
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rules = [number for number, line in enumerate(lines) if line.startswith("|---")]
    body = [line for number, line in enumerate(lines) if not {number, number + 1} & {*rules}]
    return [line.replace("\u00a0", " ").strip("| ").split(" | ") for line in body]


def test_all_is_there_but_what_nobody_measured(usual: tuple[Path, str, Page]) -> None:
    _, _, page = usual
    assert [section for section in sections(page) if section in NEW] == list(NEW[:-1])
    assert "left-out" in sections(page)
    assert any("tare calibrate" in text for text in page.text)


def test_figures_say_the_numbers_of_the_verdicts(usual: tuple[Path, str, Page]) -> None:
    folder, _, page = usual
    comparisons = json.loads((folder / "verdicts.json").read_text())["comparisons"]
    request, _ = labels(page, "Difference by quantile")
    shapes = {
        comparison["condition"]: comparison["shape"]["shift"]
        for comparison in comparisons
        if comparison["span"] == "request" and comparison["shape"]
    }
    assert set(shapes) == {"hook", "twin"}
    for shift in shapes.values():
        at = shift[-1]
        numbers = [
            re.sub(r"[^\d.]", "", percent(abs(at[name]), signed=False))
            for name in ("relative", "low", "high")
        ]
        name = f"p{100 * at['q']:g}"
        pattern = name + r" [+−]?{}\d*.%? \([+−]?{}\d*.*? to [+−]?{}\d*".format(*numbers)
        assert re.search(pattern, request), (pattern, request)


def test_the_control_is_one_but_none_that_anybody_declared(usual: tuple[Path, str, Page]) -> None:
    folder, html, page = usual
    assert "~again" not in html
    assert "~again" not in (folder / MARKDOWN).read_text()
    assert "control" not in words(page)
    for label in (*labels(page, "Mean distance"), *labels(page, "Levels of each run")):
        assert "control" in label
    text = "".join(page.text)
    assert re.search(
        r"control: the baseline does not differ from itself over [89]\u00a0blocks", text
    )
    assert "on this machine 1 of 1 control differed so far" in text


def test_distances_are_of_valid_runs(usual: tuple[Path, str, Page]) -> None:
    _, _, page = usual
    found = labels(page, "Mean distances of")
    assert len(found) == 2
    assert all(label.startswith("Mean distances of 35 runs") for label in found)


def test_spans_are_in_the_order_of_their_effects(usual: tuple[Path, str, Page]) -> None:
    folder, _, _ = usual
    found = rows(folder, "Spans")
    assert sorted(name for name, *_ in found[:2]) == ["hook, pay", "hook, request"]
    effects = [float(re.sub(r"[^\d.-]", "", row[2].replace("−", "-"))) for row in found]
    assert len(effects) == 4
    assert effects == sorted(effects, reverse=True)


def test_every_number_of_a_verdict_is_there(usual: tuple[Path, str, Page]) -> None:
    folder, _, _ = usual
    comparisons = json.loads((folder / "verdicts.json").read_text())["comparisons"]
    behind = rows(folder, "Numbers behind each verdict", "Numbers behind the verdicts")
    found = {row[0]: row[1:] for row in behind}
    assert len(found) == 4
    for comparison in comparisons:
        if comparison["role"] == "primary":
            shape = comparison["shape"]
            p = (
                *(comparison[k] for k in ("p", "p_adjusted", "p_equivalent")),
                *(shape[k] for k in ("ks_p", "ad_p", "p_adjusted")),
            )
            cells = found[f"{comparison['condition']}, {comparison['span']}"]
            assert cells[0] == cells[3] == "3.0 %"
            assert cells[4:10] == [cell(p_value(number)) for number in p]


def test_the_warm_up_and_its_other_cuts_are_shown(usual: tuple[Path, str, Page]) -> None:
    folder, _, page = usual
    found = rows(folder, "Warm-up")
    kinds = {row[0]: row[1:] for row in found if len(row) == 8}
    assert kinds["plain"][-1] == kinds["control"][-1] == "warm-up"
    assert kinds["hook"][0] == kinds["hook"][2]
    cuts = [row for row in found if row[0] == "hook, request" and len(row) == 5]
    cut = int(re.sub(r"\D", "", cuts[0][1]))
    assert 150 <= cut <= 250
    assert [row[1] for row in cuts[1:]] == ["twice the warm-up", "half of the run"]
    assert all("%" in row[3] for row in cuts)
    assert "warm-up at" in labels(page, "Levels of each run")[0]


def test_the_power_curve_is_that_of_the_verdict(usual: tuple[Path, str, Page]) -> None:
    """What it finds in as many blocks as there were is the verdict's smallest detectable effect."""
    result = read(usual[0])
    for comparison in result.primary_comparisons:
        known = power.scatter(result, comparison)
        assert known is not None
        assert known.blocks == min(comparison.runs.baseline, comparison.runs.condition)
        alpha, threshold = result.experiment.alpha, log1p(result.threshold(comparison))
        design = Design(known.deviation, known.blocks - 1, True, alpha, threshold)
        least = design.detectable(known.blocks)
        assert least is not None
        # The verdict's is of all comparisons together.
        assert comparison.mde is not None
        assert expm1(least) <= comparison.mde * (1 + 1e-9)


def test_blocks_had_best_been_shorter(usual: tuple[Path, str, Page]) -> None:
    """A block's own scatter is what these runs have; more requests in it tell nothing."""
    folder, _, _ = usual
    found = {row[0]: row[1:] for row in rows(folder, "More blocks")[4:]}
    assert found.keys() == {f"{name}, {span}" for name in ("hook", "twin") for span in SPANS}
    for blocks, _, _, error, best, _, then in found.values():
        now, shorter = (float(share.removesuffix(" %")) for share in (error, then))
        assert int(best) > int(blocks)
        assert 0 < shorter < now


def test_distances_are_shown_by_every_statistic(usual: tuple[Path, str, Page]) -> None:
    folder, _, _ = usual
    found = rows(folder, "Distances between runs")
    shapes = {
        f"{comparison['condition']}, {comparison['span']}": comparison["shape"]["apart"]
        for comparison in json.loads((folder / "verdicts.json").read_text())["comparisons"]
        if comparison["shape"]
    }
    assert [row[0] for row in found[::4]] == sorted(shapes)
    assert found == [
        [
            name,
            TOLD[distances["statistic"]],
            *(as_said(distances[side]) for side in ("within", "between")),
        ]
        for name in sorted(shapes)
        for distances in shapes[name]
    ]


def as_said(distance: float) -> str:
    if distance >= 1_000:
        return f"{distance:,.0f}".replace(",", "\u202f")
    return f"{distance:#.3g}".rstrip(".")


def test_the_same_difference_by_order_and_as_a_page(usual: tuple[Path, str, Page]) -> None:
    folder, _, page = usual
    rests = "Numbers behind each verdict"
    pages = "Chance that a page meets a request slower than the baseline's p99"
    by_order = rows(folder, rests, "Effect sizes from the order of runs")
    by_page = rows(folder, rests, pages)
    assert pages in page.text
    comparisons = json.loads((folder / "verdicts.json").read_text())["comparisons"]
    assert (
        len(by_order)
        == sum(comparison["effect_sizes"] is not None for comparison in comparisons)
        > 4
    )
    for comparison in comparisons:
        name, sizes = f"{comparison['condition']}, {comparison['span']}", comparison["effect_sizes"]
        if sizes is None:
            continue
        (row,) = (row for row in by_order if row[:2] == [name, metric(comparison["metric"])])
        said = [
            typeset(f"{sizes['cliffs_delta']:+.3f}"),
            f"{sizes['vargha_delaney']:.3f}",
            percent(sizes["hodges_lehmann"]),
            interval(sizes["low"], sizes["high"]),
            percent(sizes["level"], signed=False),
        ]
        assert row[2:] == [text.replace("\u00a0", " ") for text in said]
        chances = [
            [f"{at['condition'] * 100:.1f} %"]
            for at in (comparison["shape"] or {}).get("pages", ())
        ]
        if chances:
            assert [row[3:] for row in by_page if row[0] == name] == chances


def test_every_quantile_is_in_a_table(usual: tuple[Path, str, Page]) -> None:
    folder, _, page = usual
    found = rows(folder, "Every quantile")
    comparisons = json.loads((folder / "verdicts.json").read_text())["comparisons"]
    shifts = {
        f"{comparison['condition']}, {comparison['span']}": comparison["shape"]["shift"]
        for comparison in comparisons
        if comparison["shape"]
    }
    assert len(found) == sum(map(len, shifts.values())) == 44
    for name, shift in shifts.items():
        mine = [row[1:] for row in found if row[0] == name]
        for row, at in zip(mine, shift, strict=True):
            band = interval(at["low"], at["high"])
            said = (f"p{at['q'] * 100:g}", percent(at["relative"]), band, "3.0 %")
            assert row == [text.replace("\u00a0", " ") for text in said]
            assert band in page.text


def change(folder: Path, without: tuple[str, ...]) -> None:
    path = folder / "verdicts.json"
    verdicts: dict[str, Any] = json.loads(path.read_text())
    for table in (verdicts, *verdicts["comparisons"]):
        for key in without:
            table.pop(key, None)
    path.write_text(json.dumps(verdicts))


def test_verdicts_of_before_have_their_report(tmp_path: Path) -> None:
    folder = Synthetic(requests=400, invalid=(), control=True).write(tmp_path / "result")
    read(folder)
    change(folder, ("shape", "effect_sizes", "warm_up_cuts", "controls", "threshold"))
    page = Page(write(folder).read_text(encoding="utf-8"))
    assert {"hook", "twin", "slower"} <= set(words(page))
    assert not {"shift", "control"} & {*sections(page)}
    assert {"numbers", "distances", "warm-up", "power"} <= {*sections(page)}
    there = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert there == ["#contents", *(f"#{name}" for name in sections(page))]


def test_too_little_to_show_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "result"
    _, page = written(Synthetic(requests=40, blocks=1, invalid=()), folder)
    assert [section for section in sections(page) if section in NEW] == [
        "numbers",
        "distances",
        "warm-up",
    ]
    text = "".join(page.text)
    for reason in (
        "no spans",
        "too few runs to compare quantiles",
        "this experiment has no control",
        "two blocks",
    ):
        assert reason in text


def test_runs_too_short_for_a_statistic_have_the_others(tmp_path: Path) -> None:
    """One request a run: Anderson and Darling's statistic does not exist, Kolmogorov's does."""
    made_up = Synthetic(requests=1, blocks=2, invalid=(), hooked=())
    _, page = written(made_up, tmp_path / "result")
    (label,) = labels(page, "Mean distance of each run")
    assert "Kolmogorov" in label
    assert "Anderson" not in label
