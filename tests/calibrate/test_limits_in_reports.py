# SPDX-License-Identifier: Apache-2.0
"""The report of a result shows the calibration that its verdicts rest on, and has its own page."""

import json
from dataclasses import asdict, replace
from pathlib import Path

from tests.report.page import Page
from tests.report.synthetic import Synthetic

from tare.calibration.detection import NAMES, Calibration, Detection, Range, Step
from tare.report import write
from tare.report.page.calibration import write as write_calibration
from tare.samples import read_result
from tare.samples.describe.limits import Limit
from tare.samples.read.latencies import latencies
from tare.verdict import judge

LIMIT = Limit(
    machine="m",
    service="serve",
    environment="host",
    span="request",
    statistic="p50",
    undetected_ns=100_000,
    level_ns=1.3e6,
    blocks=6,
    repetitions=10,
    shares={"0": 0.1, "50000": 0.4, "100000": 0.9},
    date="2026-01-01T00:00:00+00:00",
    version="1.0",
)
WIDER = "%, or what these runs can detect"
"""Beside the band of the first screen, where it is wider than the budget."""


def result(folder: Path, limits: list[Limit]) -> Path:
    Synthetic(requests=500, blocks=2).write(folder)
    manifest = folder / "manifest.json"
    told = json.loads(manifest.read_text()) | {"limits": [asdict(limit) for limit in limits]}
    manifest.write_text(json.dumps(told))
    return folder


def page(folder: Path, limits: list[Limit]) -> Page:
    return Page(write(result(folder, limits)).read_text(encoding="utf-8"))


def sections(page: Page) -> list[str | None]:
    """The ids of the sections that the page has."""
    return [attributes.get("id") for tag, attributes in page.tags if tag == "section"]


def test_the_curve_of_each_statistic_and_its_date(tmp_path: Path) -> None:
    found = page(tmp_path, [LIMIT])
    assert "calibration" in sections(found)
    labels = [attributes.get("aria-label") or "" for tag, attributes in found.tags if tag == "svg"]
    (wide, narrow) = [label for label in labels if label.startswith("Share of repetitions")]
    assert wide == narrow
    assert (
        "p50 10.0\u00a0% at 0\u00a0ns, 40.0\u00a0% at 50.0\u00a0µs, 90.0\u00a0% at 100\u00a0µs"
        in wide
    )
    assert WIDER in " ".join(found.text)


def test_a_service_that_nobody_calibrated_has_no_such_section(tmp_path: Path) -> None:
    found = page(tmp_path, [])
    assert "calibration" not in sections(found)
    assert ("a", {"href": "#calibration"}) not in found.tags
    assert "tare calibrate" in " ".join(found.text)
    assert WIDER not in " ".join(found.text)


def test_a_statistic_that_raised_alarms_is_warned_of(tmp_path: Path) -> None:
    alarming = [replace(LIMIT, statistic=name, undetected_ns=None) for name in ("p50", "ks")]
    folder = result(tmp_path, [*alarming, replace(LIMIT, statistic="p95")])
    told = [line for line in judge(read_result(folder)).warnings if "calibration" in line]
    assert told == [
        "host, request: p50, ks differed without any delay in the calibration of"
        " 2026-01-01T00:00:00+00:00: do not rely on these metrics here; repeat 'tare calibrate'"
    ]
    assert told[0] in " ".join(Page(write(folder).read_text(encoding="utf-8")).text)


def test_a_calibration_leaves_out_the_warm_up_that_a_verdict_leaves_out(tmp_path: Path) -> None:
    made = Synthetic(requests=2000, blocks=2, invalid=(), warm_up=0.2)
    folder = made.write(tmp_path)
    judged = {(run.condition, run.block): run.answered for run in read_result(folder).runs}
    assert max(judged.values()) < 1800
    (runs,) = latencies(folder).values()
    assert {key: of.size for key, of in runs.items()} == judged


def detections(level_ns: float, refused: tuple[int, ...] = ()) -> tuple[Detection, ...]:
    """By every statistic; the service refused these delays."""
    some = Range(0.1, 0.2, 0.3)
    steps = tuple(
        Step(delay, 0, 0, None, None) if delay in refused else Step(delay, 0, 10, some, some)
        for delay in (0, 50_000, 100_000)
    )
    return tuple(Detection("host", "request", name, level_ns, 0.05, steps) for name in NAMES)


def test_the_page_of_a_calibration_has_figures_of_every_request(tmp_path: Path) -> None:
    found = Calibration(
        name="try",
        date=LIMIT.date,
        machine="m",
        version="1.0",
        blocks=6,
        repetitions=10,
        services={"short": "serve", "long": "serve slowly", "none": "serve not"},
        detections={
            "short": detections(1.3e6),
            "long": detections(27e6, (100_000,)),
            "none": detections(1e9, (50_000, 100_000)),
        },
    )
    page = Page(write_calibration(found, tmp_path).read_text(encoding="utf-8"))
    labels = [attributes.get("aria-label") or "" for tag, attributes in page.tags if tag == "svg"]
    shares, pairs = (
        [label for label in labels if label.startswith(begin)]
        for begin in ("Share of repetitions", "Single pairs of runs")
    )
    # Each is drawn for a wide window and for a narrow one.
    assert (len(shares), len(pairs)) == (6, 6)
    assert ["at 100\u00a0µs" in label for label in shares[::2]] == [True, False, False]
    first, text = " ".join(page.first_screen), " ".join(page.text)
    assert "short: 1.30 ms" in text
    assert "over 100\u00a0µs" in first
    assert "over 50.0\u00a0µs" in first
    assert "unknown" in first
    assert "p50: not measured" in text
