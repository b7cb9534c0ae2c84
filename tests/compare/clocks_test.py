# SPDX-License-Identifier: Apache-2.0
"""Services with different clocks: the path is right, and the answer says what was done."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import in_process

MS = 1_000_000


def written(path: Path, late_ms: float, wait: bool = True) -> Path:
    """Requests of a shop that calls a bank, and may not wait for it; the bank's clock is late."""
    generator = np.random.default_rng(1)
    lines = []
    for number in range(40):
        there, back, work = generator.uniform((0.1, 0.1, 3), (0.2, 0.2, 4))
        took = there + work + back if wait else 0.3
        spans: tuple[tuple[str, int, str, float, float], ...] = (
            ("shop", 2, "", 0, 8),
            ("shop", 3, "1", 1, took),
            ("bank", 2, "2", 1 + there - late_ms, work),
        )
        resources: list[dict[str, Any]] = [
            {
                "resource": {
                    "attributes": [{"key": "service.name", "value": {"stringValue": service}}]
                },
                "scopeSpans": [{"spans": [{
                    "traceId": f"{number:032x}", "spanId": f"{place}", "parentSpanId": up,
                    "name": "pay", "kind": kind,
                    "startTimeUnixNano": str(10**18 + int((20 * number + begin) * MS)),
                    "endTimeUnixNano": str(10**18 + int((20 * number + begin + took) * MS)),
                }]}],
            }
            for place, (service, kind, up, begin, took) in enumerate(spans, start=1)
        ]  # fmt: skip
        lines.append(json.dumps({"resourceSpans": resources}) + "\n")
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize(("late_ms", "word"), [(-3, "ahead of"), (3, "behind")])
def test_the_path_of_clocks_that_differ_is_the_path_of_equal_clocks(
    tmp_path: Path, late_ms: float, word: str
) -> None:
    old, equal = (written(tmp_path / name, 0) for name in ("old", "equal"))
    late = written(tmp_path / "late", late_ms)
    found = [
        json.loads(in_process.tare("compare", old, new, "--json").stdout) for new in (equal, late)
    ]
    equal_path, path = (
        {part["span"]: part["critical_ns"]["condition"] for part in answer["traces"][0]["parts"]}
        for answer in found
    )
    assert len(path) == 3
    assert path == pytest.approx(equal_path, abs=2)
    told = [[line for line in answer["warnings"] if "the clock of" in line] for answer in found]
    assert told[0] == []
    (line,) = told[1]
    assert f"the clock of 'bank' is 3 ms {word} the clock of 'shop' (calls: 40)" in line


def test_requests_whose_times_are_unknown_have_no_path(tmp_path: Path) -> None:
    old, new = (written(tmp_path / f"{late}", late, wait=False) for late in (0, 3))
    done = in_process.tare("compare", old, new)
    assert done.returncode == 0, done.stderr
    assert "mean time on the critical path" not in done.stdout
    answer = " ".join(done.stdout.split())
    assert answer.startswith(f"warning: {new}: 40 of 40 server spans of 'bank' begin before")
    assert "left out of the critical path" in answer
    shown = " ".join(in_process.tare("spans", "show", new).stderr.split())
    assert "40 of 40 server spans of 'bank' begin before" in shown
