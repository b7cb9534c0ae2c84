# SPDX-License-Identifier: Apache-2.0
"""What the report says of the time outside of the root span."""

import json
from pathlib import Path

import pytest
from tests.report.page import written
from tests.report.test_machine import table
from tests.report.traced import SHOP, Traced

pytestmark = pytest.mark.usefixtures("one_layout")


def test_each_condition_has_its_time_outside_of_the_root_span(tmp_path: Path) -> None:
    folder = tmp_path / "result"
    made_up = Traced(effects={"old": 0.0, "new": 0.1}, blocks=2, requests=200, outside_ns=20_000)
    written(made_up, folder)
    found = json.loads((folder / "verdicts.json").read_text())["round_trips"]
    places = [(row["condition"], row["root"], row["metric"], row["runs"]) for row in found]
    assert places == [
        (name, SHOP[0].name, metric, 2) for name in ("old", "new") for metric in ("p50", "p99")
    ]
    for row in found:
        if row["metric"] == "p50":
            # Slices with steal are left out of the round trips alone.
            assert row["difference_ns"] == pytest.approx(20_000, rel=0.05)
    head, *rows = table(folder, "Round trip")
    assert [row[:3] for row in rows] == [[name, root, metric] for name, root, metric, _ in places]
    assert head[:3] == ["condition", "root span", "metric"]
