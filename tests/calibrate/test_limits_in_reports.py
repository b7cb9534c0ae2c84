# SPDX-License-Identifier: Apache-2.0
"""The report of a result shows the calibration that its verdicts rest on."""

import json
from dataclasses import asdict
from pathlib import Path

from tests.report.page import Page
from tests.report.synthetic import Synthetic

from tare.report import write
from tare.samples.limits import Limit

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
WIDER = "%, or what can be told here"
"""Beside the band of the first screen, where it is wider than the budget."""


def page(folder: Path, limits: list[Limit]) -> Page:
    Synthetic(requests=500, blocks=2).write(folder)
    manifest = folder / "manifest.json"
    told = json.loads(manifest.read_text()) | {"limits": [asdict(limit) for limit in limits]}
    manifest.write_text(json.dumps(told))
    return Page(write(folder).read_text(encoding="utf-8"))


def test_the_curve_of_each_statistic_and_its_date(tmp_path: Path) -> None:
    found = page(tmp_path, [LIMIT])
    assert ("section", {"id": "calibration"}) in found.tags
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
    assert ("section", {"id": "calibration"}) not in found.tags
    assert ("a", {"href": "#calibration"}) not in found.tags
    assert "tare calibrate" in " ".join(found.text)
    assert WIDER not in " ".join(found.text)
