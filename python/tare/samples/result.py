# SPDX-License-Identifier: Apache-2.0
"""Runs from a result folder that the lab wrote."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.errors import InputError
from tare.samples.engine import connect, exactly, first_line, latency, summaries
from tare.samples.manifest import read_manifest
from tare.samples.model import REQUEST, Experiment, Run
from tare.samples.quiet import LeftOut, find_left_out

if TYPE_CHECKING:
    from ibis.backends.duckdb import Backend
    from ibis.expr.types import Table


@dataclass(frozen=True)
class Result:
    """An opened result folder."""

    folder: Path
    backend: Backend
    manifest: dict[str, Any]
    left_out: LeftOut

    def samples(self) -> Table | None:
        """All samples of all runs with `latency_ns` and `left_out`; None when there are none."""
        import ibis
        import pyarrow as pa

        table = read_hive(self.backend, self.folder, "samples")
        if table is None:
            return None
        ok: Any = table.ok.fill_null(False) if "ok" in table.columns else ibis.literal(True)
        span: Any = ibis.literal(REQUEST)
        if "span" in table.columns:
            span = table.span.cast("string").fill_null(REQUEST)
        table = table.mutate(latency_ns=latency(table), ok=ok, span=span)
        if not self.left_out.slices or "slice" not in table.columns:
            return table.mutate(left_out=ibis.literal(False))
        runs, slices = zip(*self.left_out.slices, strict=True)
        hit = ibis.memtable(pa.table({"hit_run": runs, "hit_slice": slices}))
        joined = table.left_join(hit, [table.run == hit.hit_run, table.slice == hit.hit_slice])
        return joined.mutate(left_out=joined.hit_run.notnull()).drop("hit_run", "hit_slice")


def open_result(folder: Path) -> Result:
    """Opens a result folder. Raises InputError when it is none."""
    manifest = read_manifest(folder)
    backend = connect()
    return Result(folder, backend, manifest, find_left_out(backend, folder, manifest))


def read_result(folder: Path) -> Experiment:
    """All runs of a result folder, invalid ones too, with their summaries.

    Slices in which something else had the CPU are left out in pairs: docs/statistics.md.
    Raises InputError when the folder is none.
    """
    with readable(folder):
        result = open_result(Path(folder))
        rows = _summaries(result)
    manifest = result.manifest
    spans = _spans(manifest, rows)
    runs = [
        _run(entry, span, rows.get(entry["run"], {}).get(span), result.left_out)
        for entry in manifest["runs"]
        for span in spans[entry["run"]]
    ]
    return Experiment(
        runs=tuple(runs),
        baseline=manifest["baseline"],
        paired=True,
        budget=manifest["budget"],
        primary=manifest.get("primary", "p50"),
        alpha=manifest.get("alpha", 0.05),
        warnings=(*manifest.get("warnings", ()), *result.left_out.warnings),
        control=manifest.get("control"),
    )


@contextmanager
def readable(folder: Path) -> Iterator[None]:
    """Turns the engine's errors about tables of a result into one InputError."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise InputError(
            f"{folder}: a table of the result cannot be read: {first_line(error)};"
            " remove a damaged file to go on without its run"
        ) from error


def read_hive(backend: Backend, folder: Path, name: str) -> Table | None:
    """One table of a result folder with condition (string), block and run (int) from its paths."""
    files = sorted((folder / name).glob("condition=*/block=*/run=*/*.parquet"))
    if not files:
        return None
    table = backend.read_parquet(
        [exactly(file) for file in files],
        hive_partitioning=True,
        hive_types_autocast=False,
        union_by_name=True,
    )
    return table.mutate(
        condition=table.condition.cast("string"),
        block=table.block.cast("int32"),
        run=table.run.cast("int32"),
    )


def _summaries(result: Result) -> dict[int, dict[str, dict[str, Any]]]:
    """A row for each span of each run that has samples, by run and span."""
    samples = result.samples()
    rows: dict[int, dict[str, dict[str, Any]]] = {}
    if samples is not None:
        by = ["run", "span"]
        kept = summaries(samples.filter(~samples.left_out), by)
        for row in kept.order_by(by).to_pyarrow().to_pylist():
            rows.setdefault(row["run"], {})[row["span"]] = row
    return rows


def _spans(manifest: dict[str, Any], rows: dict[int, dict[str, Any]]) -> dict[int, list[str]]:
    """The spans of each run. One that failed has those of its condition's other runs.

    It would have had them, and is missing in the comparison of each.
    """
    usual: dict[tuple[str, str], set[str]] = {}
    for entry in manifest["runs"]:
        place = entry["environment"], entry["condition"]
        usual.setdefault(place, set()).update(rows.get(entry["run"], ()))
    spans = {}
    for entry in manifest["runs"]:
        mine = set(rows.get(entry["run"], ()))
        if not mine or not entry["valid"]:
            mine |= usual[entry["environment"], entry["condition"]]
        spans[entry["run"]] = sorted(mine or {REQUEST})
    return spans


def _run(entry: dict[str, Any], span: str, row: dict[str, Any] | None, left_out: LeftOut) -> Run:
    row = row or {"requests": 0, "errors": 0}
    answered = row["requests"] - row["errors"]
    summaries_of = {name: row[name] for name in ("p50", "p95", "p99", "mean") if answered}
    whole = span == REQUEST
    cpu = (entry.get("cpu") or {}).get("service_ns_per_request")
    if whole and cpu is not None:
        summaries_of["cpu_service"] = cpu
    valid = bool(entry["valid"]) and answered > 0
    reason = entry.get("reason") or (None if valid else "no successful request was recorded")
    started, duration = entry.get("started_ns"), entry.get("duration_ns")
    return Run(
        environment=entry["environment"],
        condition=entry["condition"],
        block=entry["block"],
        run=entry["run"],
        span=span,
        requests=_or(entry.get("requests"), row["requests"]) if whole else row["requests"],
        errors=_or(entry.get("errors"), row["errors"]) if whole else row["errors"],
        answered=answered,
        started_ns=started,
        ended_ns=started + duration if started is not None and duration is not None else None,
        endpoint=entry.get("endpoint"),
        summaries=summaries_of,
        valid=valid,
        reason=reason,
        left_out=left_out.shares.get(entry["run"], 0.0),
    )


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value
