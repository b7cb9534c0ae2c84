# SPDX-License-Identifier: Apache-2.0
"""What environments cost a program, in the report."""

import json
from pathlib import Path

from tests.report.page import written
from tests.report.synthetic import Synthetic
from tests.report.test_machine import table

from tare.report import HTML, write


def test_costs_of_environments_are_beside_each_other(tmp_path: Path) -> None:
    folder = tmp_path / "result"
    written(Synthetic(requests=50), folder)
    assert "what kernel, memory and arithmetic cost" not in (folder / HTML).read_text()
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["fingerprints"] = {
        "host": {"system_call_ns": 160.0, "flops_per_second": 9e9, "cpu_share": 0.99},
        "<b>pod": {"system_call_ns": 200.0, "flops_per_second": 9e9, "round_trip_ns": 14000.0},
        "odd": {"system_call_ns": 0.0, "unknown": 1.0},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    write(folder)
    head, host, pod, odd = table(folder, "Environments")
    cells = [dict(zip(head, row, strict=True)) for row in (host, pod, odd)]
    assert [row["system call"] for row in cells] == ["160 ns", "200 ns (×1.25)", "0 ns (×0)"]
    assert [row["Linpack"] for row in cells] == ["9 GFLOP/s", "9 GFLOP/s (×1)", "–"]
    assert [row["round trip of 64 B"] for row in cells] == ["–", "14.0 µs", "–"]
    assert [row["CPU of Linpack"] for row in cells] == ["99.0 %", "–", "–"]
    assert "<b>pod" not in (folder / HTML).read_text()
