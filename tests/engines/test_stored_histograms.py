# SPDX-License-Identifier: Apache-2.0
"""Histograms of a result are counted once, and again where its samples have changed."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.report.synthetic import Synthetic

from tare.samples.engines import histogram, stored_histograms
from tare.samples.read.measured import read_result


def test_a_histogram_is_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []

    def noted(samples: Any) -> Any:
        counted.append(samples)
        return histogram(samples)

    monkeypatch.setattr("tare.samples.engines.describing.EXACT_ROWS", {"duckdb": 99})
    monkeypatch.setattr(stored_histograms, "histogram", noted)
    folder = Synthetic(requests=300, blocks=2, invalid=()).write(tmp_path / "result")
    first = read_result(folder)
    looks = len(counted)
    assert looks == 1 + len(first.cuts)
    again = read_result(folder)
    assert len(counted) == looks
    assert again.runs == first.runs
    (one, *_) = (folder / stored_histograms.HISTOGRAMS).iterdir()
    one.write_bytes(b"cut off")
    assert read_result(folder).runs == first.runs
    assert len(counted) == looks + 1
    monkeypatch.setattr(stored_histograms, "FORMAT", stored_histograms.FORMAT + 1)
    read_result(folder)
    assert len(counted) == 2 * looks + 1
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["runs"].pop()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert len(read_result(folder).runs) == len(first.runs) - 1
    assert len(counted) > 2 * looks + 1
