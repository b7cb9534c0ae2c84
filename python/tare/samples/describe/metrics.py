# SPDX-License-Identifier: Apache-2.0
"""What machine and service did in the measured window of each run, from readings per second.

A reading that is only partly within the window counts by that part, so a window shorter than a
second has values too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tare.samples.sql.column import functions_of

if TYPE_CHECKING:
    from pathlib import Path

    from tare.samples.manifest import RunEntry
    from tare.samples.sql.table import Database, Table

LEVELS = (
    "clock_error",
    "clock_error_limit",
    "clock_offset",
    "frequency",
    "memory",
    "memory_applications",
    "memory_total",
    "memory_used",
)
"""Metrics whose readings are levels; readings of all others are increases."""
CPU_TIMES = ("cpu_user", "cpu_system", "cpu_irq", "cpu_iowait", "steal", "cpu_idle")
"""The times of the subject machine whose sum is the time of all CPUs."""
ALWAYS = 2**62
Key = tuple[str, str]
"""Subject and metric."""


class Window(NamedTuple):
    """A part of a run, in nanoseconds since the Unix epoch."""

    run: int
    since_ns: int
    until_ns: int


@dataclass(frozen=True)
class Moment:
    """One part of a run, and its value as `averages` has it."""

    at_ns: float
    """Its middle, since the Unix epoch."""
    value: float


def metrics_per_second(backend: Database, folder: Path) -> Table | None:
    """The readings of a result folder; None if it has none."""
    from tare.samples.engines.hive import read_hive

    table = read_hive(backend, folder, "machine")
    return None if table is None else readings(table)


def readings(table: Table) -> Table | None:
    """The rows of the table `machine` that were read once per second; None if it has no times."""
    if "start_ns" not in table.columns:
        return None
    typed = table.select(
        "run",
        subject=table.subject.cast("string"),
        metric=table.metric.cast("string"),
        start=table.start_ns.cast("int64"),
        length=table.duration_ns.cast("int64"),
        value=table.value.cast("float64"),
        slice=table.slice,
    )
    return typed.filter(typed.slice.isnull(), typed.length > 0, typed.start.between(0, ALWAYS - 1))


def averages(table: Table, runs: Iterable[RunEntry]) -> dict[int, dict[Key, float]]:
    """`averages_in` of the measured window of each run; for a run without times, of all readings.

    Runs without readings are absent.
    """
    windows = {run.run: _measured(run) for run in runs}
    found = averages_in(table, [*windows.values()])
    return {run: values for run, values in zip(windows, found, strict=True) if values}


def averages_in(table: Table, windows: Sequence[Window]) -> list[dict[Key, float]]:
    """The mean level, or the increase per second, of each metric in each window.

    CPU times of the machine are shares of the time of all CPUs. `table` is `readings`.
    """
    backend: Database = table.get_backend()
    sql = functions_of(table)
    joined = table.inner_join(_stored(backend, windows), "run")
    start, end = joined.start, joined.start + joined.length
    overlap: Any = sql.least(end, joined.until) - sql.greatest(start, joined.since)
    parts = joined.select("window", "subject", "metric", "value", "length", overlap=overlap)
    parts = parts.filter(parts.overlap > 0)
    part: Any = parts.overlap / parts.length
    summed = parts.group_by(["window", "subject", "metric"]).aggregate(
        increase=(parts.value * part).sum(),
        level=(parts.value * parts.overlap).sum(),
        time=parts.overlap.sum(),
    )
    found: list[dict[Key, float]] = [{} for _ in windows]
    for row in summed.rows():
        is_level = row["metric"] in LEVELS
        value = row["level"] / row["time"] if is_level else 1e9 * row["increase"] / row["time"]
        found[row["window"]][row["subject"], row["metric"]] = value
    for values in found:
        _as_shares(values)
    return found


def courses(
    table: Table, runs: Sequence[int], keys: Sequence[Key], points: int
) -> dict[Key, dict[int, list[Moment]]]:
    """The course of some metrics in each run, in at most about `points` equal parts of its time.

    Values are as those of `averages`, but CPU times are per second. `table` is `readings`.
    """
    metrics = {metric for _, metric in keys}
    chosen = table.filter(table.run.isin(list(runs)), table.metric.isin(sorted(metrics)))
    ends = chosen.group_by("run").aggregate(
        first=chosen.start.min(), last=(chosen.start + chosen.length).max()
    )
    joined = chosen.inner_join(ends.cache(), "run")
    width: Any = (joined["last"] - joined["first"]) / points
    middle: Any = joined.start + joined.length / 2
    binned = joined.select(
        "run",
        "subject",
        "metric",
        "value",
        "length",
        middle=middle,
        bin=((middle - joined["first"]) / width).floor(),
    )
    parts = (
        binned.group_by(["run", "subject", "metric", "bin"])
        .aggregate(
            at=(binned.middle * binned.length).sum() / binned.length.sum(),
            increase=1e9 * binned.value.sum() / binned.length.sum(),
            level=binned.value.mean(),
        )
        .order_by(["run", "bin"])
    )
    found: dict[Key, dict[int, list[Moment]]] = {key: {} for key in keys}
    for row in parts.rows():
        key = row["subject"], row["metric"]
        if key in found:
            value = row["level" if key[1] in LEVELS else "increase"]
            found[key].setdefault(int(row["run"]), []).append(Moment(float(row["at"]), value))
    return {key: of_runs for key, of_runs in found.items() if of_runs}


def _measured(run: RunEntry) -> Window:
    if run.started_ns is None or run.duration_ns is None:
        return Window(run.run, 0, ALWAYS)
    return Window(run.run, run.started_ns, run.started_ns + run.duration_ns)


def _stored(backend: Database, windows: Sequence[Window]) -> Table:
    import pyarrow as pa

    from tare.samples.sql.table import fresh_name

    since = [min(window.since_ns, ALWAYS - 1) for window in windows]
    until = [
        min(max(window.until_ns, begin + 1), ALWAYS)
        for window, begin in zip(windows, since, strict=True)
    ]
    columns = {
        "window": range(len(windows)),
        "run": [window.run for window in windows],
        "since": since,
        "until": until,
    }
    arrays = {name: pa.array(values, pa.int64()) for name, values in columns.items()}
    return backend.create_table(fresh_name("windows"), pa.table(arrays))


def _as_shares(of_run: dict[Key, float]) -> None:
    times = {("machine", metric) for metric in CPU_TIMES} & of_run.keys()
    whole = sum(of_run[key] for key in times)
    for key in times:
        if len(times) == len(CPU_TIMES) and whole > 0:
            of_run[key] /= whole
        else:
            del of_run[key]
