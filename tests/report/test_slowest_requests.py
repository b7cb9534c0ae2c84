# SPDX-License-Identifier: Apache-2.0
"""The slowest requests in the report."""

from pathlib import Path

import pytest
from tests.report.page import written
from tests.report.synthetic import Synthetic
from tests.report.test_machine import table

from tare.report.typesetting import NO_BREAK, duration
from tare.samples.read.result import open_result

pytestmark = pytest.mark.usefixtures("one_layout")
EFFECTS = {"old": 0.0, "new": 0.1}


def test_each_condition_has_its_slowest_requests_and_their_seconds(tmp_path: Path) -> None:
    made_up = Synthetic(effects=EFFECTS, requests=300, blocks=2, readings=8, invalid=(2,))
    folder = tmp_path / "result"
    written(made_up, folder)
    rows = table(folder, "Slowest requests")
    assert rows[0][:5] == ["time (UTC)", "run", "block", "latency", "latency / p50"]
    assert rows[0][5:7] == ["steal", "CPU pressure"]
    assert not [heading for heading in rows[0] if "I/O" in heading], (
        "what was not read has no column"
    )
    assert len(rows) == 2 * (1 + 20 + 1)
    opened = open_result(folder)
    samples = opened.samples()
    assert samples is not None
    requests = samples.to_pyarrow().to_pylist()
    for number, condition in enumerate(EFFECTS):
        head, *slow, mean = rows[22 * number : 22 * (number + 1)]
        assert head == rows[0]
        mine = {run.run for run in opened.manifest.runs if run.condition == condition} - {2}
        latencies = [
            row["latency_ns"] for row in requests if row["run"] in mine and not row["left_out"]
        ]
        expected = sorted(latencies, reverse=True)[:20]
        assert [row[3] for row in slow] == [
            duration(latency).replace(NO_BREAK, " ") for latency in expected
        ]
        assert "2" not in [row[1] for row in slow]
        assert {row[5] for row in slow} <= {f"0.{n} %" for n in (49, 50, 51)}
        assert mean[:2] == ["mean of the runs", "–"]


def test_without_readings_there_are_only_times(tmp_path: Path) -> None:
    folder = tmp_path / "result"
    written(Synthetic(effects=EFFECTS, requests=30, blocks=1), folder)
    rows = table(folder, "Slowest requests")
    assert {len(row) for row in rows} == {5}
    assert len(rows) == 2 * 21
