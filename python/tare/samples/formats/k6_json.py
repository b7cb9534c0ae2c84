# SPDX-License-Identifier: Apache-2.0
"""k6's JSON output (`k6 run --out json=FILE`): its points of http_req_duration, in ms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.samples.formats.json_file import lines, stored
from tare.samples.formats.json_lines import require
from tare.samples.formats.k6_csv import APART, LABELS, METRIC, outcome
from tare.samples.formats.labels import mixed
from tare.samples.formats.source import Source
from tare.samples.formats.times import bounded, iso_8601, nanoseconds
from tare.samples.sql.engine import count_rows

if TYPE_CHECKING:
    from tare.samples.sql.table import Database


def read(backend: Database, path: Path) -> Source:
    """Reads the requests; points of other metrics are passed over, broken lines counted."""
    lazy = lines(backend, path)
    point: Any = (lazy.json["metric"].json_text == METRIC) & (
        lazy.json["type"].json_text == "Point"
    )
    table = stored(backend, lazy.filter(point | lazy.json.isnull()), path)
    data: Any = table.json["data"]
    broken = count_rows(table.filter(table.json.isnull()))
    require(table.filter(table.json.notnull()), broken, path, f"point of {METRIC}")
    duration = nanoseconds(data["value"].cast("string"), "ms")
    names = ("status", "expected_response", "error")
    samples = table.select(
        row=table.rowid(),
        # k6 stamps a request at its end.
        start_ns=bounded(iso_8601(data["time"].json_text)) - bounded(duration),
        duration_ns=duration,
        **outcome({name: data["tags"][name].json_text for name in names}),
    )
    labelled = table.select(**{label: data["tags"][label].json_text for label in LABELS})
    notes = [
        note
        for label in LABELS
        for note in mixed(labelled, label, f"in k6's CSV {APART % label} compares each by itself")
    ]
    return Source(samples, notes=(*notes,))
