# SPDX-License-Identifier: Apache-2.0
"""What Java's virtual threads log is theirs, in their order, whichever threads carry them."""

import json
import subprocess
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from tests.log.conftest import TARE_LOG, events, stats
from tests.log.jvm import those_from
from tests.log.test_java import logged

VIRTUAL = 1 << 31


@pytest.mark.parametrize("java", those_from(21), indirect=True)
def test_ten_thousand_virtual_threads(java: list[str], tmp_path: Path) -> None:
    threads, each = 10_000, 50
    file, totals = logged(java, tmp_path, "virtual", threads, each, TARE_LOG_RING="256K")
    assert (totals["lost"], totals["unserved"]) == (0, 0)
    table = events(file).sort_by("ticks")
    numbers = table.filter(pc.equal(table["channel"], "virtual"))
    assert np.array_equal(np.sort(numbers["payload"].to_numpy()), np.arange(threads * each))
    by_thread: dict[int, list[int]] = defaultdict(list)
    for tid, payload, name in zip(
        numbers["tid"].to_pylist(),
        numbers["payload"].to_pylist(),
        numbers["thread"].to_pylist(),
        strict=True,
    ):
        assert name == f"v{payload // each * each}"
        by_thread[tid].append(payload)
    assert len(by_thread) == threads
    assert all(tid >= VIRTUAL for tid in by_thread)
    for its in by_thread.values():
        assert its == list(range(its[0], its[0] + each))


@pytest.mark.exhaustive
@pytest.mark.parametrize("policy", ["WAIT", "DROP", "OVERWRITE"])
@pytest.mark.parametrize("java", those_from(21), indirect=True)
def test_spans_of_virtual_threads(java: list[str], policy: str, tmp_path: Path) -> None:
    """Beginning and end are in different rings as a rule, and belong together all the same; none
    is given to another where events were lost."""
    # As few as can be lost.
    threads, each = 500, 100 if policy == "WAIT" else 400
    file, totals = logged(java, tmp_path, "moved", threads, each, policy, TARE_LOG_RING="64K")
    out = tmp_path / "trace.json"
    export = [TARE_LOG, "export", str(file), "--to", "chrome", "--out", str(out)]
    subprocess.run(export, check=True, stdout=subprocess.DEVNULL)
    trace = json.loads(out.read_text())["traceEvents"]
    ended = [event["args"] for event in trace if "end payload" in event.get("args", ())]
    assert ended
    assert all(args["payload"] == args["end payload"] for args in ended)
    (span,) = stats(file)["spans"]
    assert span["count"] == len(ended)
    if policy == "WAIT":
        assert totals["lost"] == 0
        assert (len(ended), span["unpaired"]) == (2 * threads * each, 0)
    else:
        assert totals["lost"] > 0
    table = events(file)
    table = table.filter(pc.greater_equal(table["tid"], VIRTUAL))
    table = table.filter(pc.not_equal(table["channel"], ""))
    tid, ticks = table["tid"].to_numpy(), table["ticks"].to_numpy()
    by_thread = np.argsort(tid, kind="stable")
    same = np.diff(tid[by_thread]) == 0
    assert (np.diff(ticks[by_thread])[same] >= 0).all()
