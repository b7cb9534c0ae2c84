# SPDX-License-Identifier: Apache-2.0
"""Files of `tare log`: its spans are samples. The native command takes the file apart."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.errors import InputError, NoRequestsError, TareError
from tare.native import native
from tare.samples.formats.source import Source
from tare.samples.sql import column as sql
from tare.samples.sql.engine import exactly, store

if TYPE_CHECKING:
    from tare.samples.sql.table import Database


def read(backend: Database, path: Path) -> Source:
    """Reads every span; those whose end is not known are counted, lost events are told."""

    with tempfile.TemporaryDirectory(prefix="tare-log-") as folder:
        out = Path(folder) / "spans.parquet"
        told = _exported(path, out)
        if not told["spans"]:
            raise NoRequestsError(
                f"{path}: none of its {told['events']:,} events is part of a span; name channels"
                " NAME> and NAME<, or compare what 'tare log export --to parquet --pair BEGIN=END'"
                " writes"
            )
        rows: Any = backend.read_parquet(exactly(out))
        spans = rows.filter(rows.source == "span", rows.duration_ns.notnull())
        stored = store(backend, "log", spans)
    names = ("host", "service", "span", "trace_id", "span_id", "parent_id")
    # A file has its threads one after the other, block by block: its order says nothing.
    samples = stored.select(
        *names,
        "start_ns",
        "duration_ns",
        row=sql.row_number().over(order_by=["start_ns", "span_id"]),
        source=sql.literal("span"),
        ok=sql.literal(True),
    )
    lost = told["lost"] + told["unserved"]
    note = f"{lost:,} events were lost: spans are missing that they were part of"
    return Source(samples, rejected=told["unpaired"], notes=(note,) if lost else ())


def _exported(path: Path, out: Path) -> dict[str, int]:
    """What the native command counts."""
    command = [native("bin", "tare-log"), "export", str(path), "--to", "parquet"]
    try:
        done = subprocess.run(
            [*command, "--out", str(out), "--json"],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise TareError(
            f"{command[0]}: {error.strerror}; build the native parts with 'make native'"
        ) from error
    if done.returncode:
        said = done.stderr.strip().removeprefix("tare-log: ") or "tare-log failed"
        raise InputError(said)
    counted: dict[str, int] = json.loads(done.stdout)
    return counted
