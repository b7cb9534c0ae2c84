# SPDX-License-Identifier: Apache-2.0
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tare.errors import InputError
from tare.samples.read.latencies import durations_by_run, latencies


def run(folder: Path, number: int, **columns: list[object]) -> None:
    place = folder / f"samples/condition=one/block={number}/run={number}"
    place.mkdir(parents=True)
    columns = {"start_ns": [*range(len(columns["ok"]))], **columns}
    pq.write_table(pa.table(columns), place / "samples.parquet")


def result(folder: Path, valid: list[bool]) -> Path:
    entries = [
        {"run": n, "block": n, "environment": "host", "condition": "one", "valid": good}
        for n, good in enumerate(valid, start=1)
    ]
    manifest = {"baseline": "one", "budget": 0.03, "runs": entries}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_every_run_has_its_successful_requests_by_span(tmp_path: Path) -> None:
    run(tmp_path, 1, duration_ns=[1, 2, 3], ok=[True, False, True], span=["a", "a", "b"])
    run(tmp_path, 2, duration_ns=[4, 5], ok=[True, True], span=["b", None])
    run(tmp_path, 3, duration_ns=[6], ok=[True], span=["a"])
    found = latencies(result(tmp_path, [True, True, False]))
    plain = {
        place: {key: sorted(values.tolist()) for key, values in runs.items()}
        for place, runs in found.items()
    }
    assert plain == {
        ("host", "a"): {("one", 1): [1.0]},
        ("host", "b"): {("one", 1): [3.0], ("one", 2): [4.0]},
        ("host", "request"): {("one", 2): [5.0]},
    }
    assert all(v.dtype == np.float64 for runs in found.values() for v in runs.values())


def test_a_result_in_which_nothing_succeeded_has_none(tmp_path: Path) -> None:
    assert latencies(result(tmp_path, [])) == {}
    run(tmp_path, 1, duration_ns=[1], ok=[False])
    assert latencies(result(tmp_path, [True])) == {}


def test_published_analyses_take_the_declared_conditions_in_time_order(tmp_path: Path) -> None:
    order: dict[str, list[object]] = {"seq": [2, 0, 1], "duration_ns": [30, 10, 20]}
    order["start_ns"] = [3, 1, 2]
    for number in (1, 2, 3):
        run(tmp_path, number, ok=[True, True, number != 2], **order)
    folder = result(tmp_path, [True, True, True])
    manifest = json.loads((folder / "manifest.json").read_text())
    for entry, name in zip(manifest["runs"], ("two", "one", "again"), strict=True):
        entry["condition"] = name
    (folder / "manifest.json").write_text(json.dumps(manifest | {"control": "again"}))
    found = durations_by_run(folder)
    assert [*found] == ["one", "two"]
    assert [run["request"].tolist() for run in found["one"]] == [[10, 30]]
    assert [run["request"].tolist() for run in found["two"]] == [[10, 20, 30]]
    manifest["runs"][0]["environment"] = "netns"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="has 2 environments; --method compares in one"):
        durations_by_run(folder)


def test_published_analyses_compare_the_environments_of_one_condition(tmp_path: Path) -> None:
    folder = result(tmp_path, [True, True])
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["runs"][1]["environment"] = "netns"
    manifest |= {"compare": "environments", "baseline": "host"}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert [*durations_by_run(folder)] == ["host", "netns"]
    manifest["runs"][1]["condition"] = "two"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="has 2 conditions; --method compares in one"):
        durations_by_run(folder)
