# SPDX-License-Identifier: Apache-2.0
"""wrk2's printed percentile table (`wrk --latency`, HdrHistogram text): counted values in ms.

The table has cumulative counts at rising values; what lies between two lines is counted at the
upper one, so quantiles are never too low and at most one line too high.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tare.errors import InputError
from tare.samples.formats.source import Source

if TYPE_CHECKING:
    from ibis.backends.duckdb import Backend

MOST = 1_000_000_000
_LINE = re.compile(r"^\s*(\d+\.\d+)\s+([01]\.\d+)\s+(\d+)\s+(\d+\.\d+|inf)\s*$")
_FAILED = re.compile(r"^\s*(Non-2xx or 3xx responses|Socket errors): .*$", re.MULTILINE)


def read(backend: Backend, path: Path) -> Source:
    """Reads the first table of the output: recorded latency, corrected for late sending."""
    import ibis
    import pyarrow as pa

    text = path.read_text(errors="replace")
    counted = _counted(text)
    if not counted:
        raise InputError(f"{path}: no percentile table; run wrk2 with --latency")
    if sum(requests for _, requests in counted) > MOST:
        raise InputError(f"{path}: counts more than {MOST:,} requests; expected wrk2's own output")
    table = pa.table(
        {
            "duration_ns": pa.array([value for value, _ in counted], pa.int64()),
            "requests": pa.array([count for _, count in counted], pa.int64()),
        }
    )
    bins = backend.create_table(ibis.util.gen_name("wrk2"), table, temp=True)
    rows = backend.create_table(
        ibis.util.gen_name("wrk2"),
        bins.select(bins.duration_ns, one=ibis.range(bins.requests).unnest()),
        temp=True,
    )
    samples = rows.select(row=rows.rowid(), duration_ns=rows.duration_ns, ok=ibis.literal(True))
    notes = tuple(
        f"wrk2 counts failed requests among its latencies: {line.group(0).strip()}"
        for line in _FAILED.finditer(text)
    )
    return Source(samples, ordered=False, notes=notes)


def _counted(text: str) -> list[tuple[int, int]]:
    counted: list[tuple[int, int]] = []
    before = 0
    for line in text.splitlines():
        found = _LINE.match(line)
        if found:
            value, total = round(float(found.group(1)) * 1e6), int(found.group(3))
            if total > before:
                counted.append((value, total - before))
            before = total
        elif counted and line.startswith("#["):
            break
    return counted
