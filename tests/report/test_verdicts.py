# SPDX-License-Identifier: Apache-2.0
"""The model of verdicts.json has every key that a judgement writes."""

import json
from pathlib import Path
from typing import Any

from tests.report.traced import Traced

from tare.report.result.verdicts import read_verdicts, write_verdicts
from tare.samples import read_result
from tare.verdict import judge


def keys(value: Any, at: str = "") -> set[str]:
    """Of every table in it; the tables of a list count together."""
    if isinstance(value, dict):
        inner = (keys(part, f"{at}.{key}") for key, part in value.items())
        return {f"{at}.{key}" for key in value}.union(*inner)
    if isinstance(value, list | tuple):
        return set[str]().union(*(keys(part, at) for part in value))
    return set()


def test_every_key_that_is_written_is_read(tmp_path: Path) -> None:
    made_up = Traced(effects={"old": 0.0, "new": 0.1}, control=True, requests=100)
    folder = made_up.write(tmp_path / "result")
    write_verdicts(folder, judge(read_result(folder)))
    written = json.loads((folder / "verdicts.json").read_text())
    read = read_verdicts(folder)
    assert read is not None
    some = keys(written)
    assert {".controls.alarm", ".round_trips.root", ".traces.parts.critical_ns"} <= some, some
    assert {".comparisons.shape.shift.q", ".comparisons.warm_up_cuts.name"} <= some, some
    assert some <= keys(read.model_dump())
