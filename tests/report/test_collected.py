# SPDX-License-Identifier: Apache-2.0
"""The report states what a pipeline stored of the spans of each run."""

import json
from pathlib import Path

import pytest
from tests.report.page import written
from tests.report.synthetic import Synthetic
from tests.report.test_evidence import rows

from tare.report.page.page import write

pytestmark = pytest.mark.usefixtures("one_layout")
SECTION = "Collected spans"


def test_each_run_has_the_numbers_of_its_spans(tmp_path: Path) -> None:
    folder = tmp_path / "result"
    Synthetic(effects={"old": 0.0, "new": 0.0}, requests=200, blocks=1, invalid=()).write(folder)
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text())
    numbers = {"received": 4_000, "queued": 3_999, "stored": 3_998, "missing": 2}
    (run,) = [run for run in manifest["runs"] if run["condition"] == "new"]
    run["collected"] = numbers
    file.write_text(json.dumps(manifest))
    write(folder)
    (row,) = rows(folder, SECTION)
    assert row == [str(run["run"]), "new", "4 000", "3 999", "3 998", "2", "0", "0"]


def test_an_experiment_without_a_pipeline_has_no_such_section(tmp_path: Path) -> None:
    folder = tmp_path / "result"
    written(Synthetic(requests=200, blocks=2), folder)
    assert rows(folder, SECTION) == []
