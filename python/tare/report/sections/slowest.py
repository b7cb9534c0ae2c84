# SPDX-License-Identifier: Apache-2.0
"""The section of the slowest requests, with what machine and service did during each."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from statistics import fmean
from typing import TYPE_CHECKING

from tare.report.result.distributions import ConditionKey
from tare.report.result.result import Result
from tare.report.result.slowest import REQUESTS, Slow
from tare.report.sections.machine import MACHINE, SERVICE
from tare.report.sections.sections import Section, Table
from tare.report.tables import where
from tare.report.typesetting import duration

if TYPE_CHECKING:
    import tare.samples.sql.table as sql

CONDITIONS = 8
"""Of each environment."""
COLUMNS = ("time (UTC)", "run", "block", "latency", "latency / p50")
Key = tuple[str, str]
READINGS: Mapping[Key, str] = {
    ("machine", "steal"): "steal",
    ("machine", "pressure_cpu"): "CPU pressure",
    ("machine", "pressure_io"): "I/O pressure",
    ("service", "pressure_io"): "service I/O pressure",
    ("service", "throttled_time"): "service throttled",
}
"""Titles of columns, by subject and metric."""
WRITE = {
    (subject, metric.name): metric.write
    for subject, metrics in (("machine", MACHINE), ("service", SERVICE))
    for metric in metrics
}


def section(
    result: Result, found: Mapping[ConditionKey, Sequence[Slow]], readings: "sql.Table | None"
) -> Section:
    """A table for each condition of each environment."""
    places = [
        (environment, condition)
        for environment in result.environments
        for condition in result.conditions[:CONDITIONS]
        if (environment, condition) in found
    ]
    return Section(
        anchor="slowest",
        name="Slowest requests",
        gist=f"the {REQUESTS} slowest requests of each condition, with steal and pressure",
        how="Successful requests after the warm-up, of all valid runs. Machine and service are read"
        " about once per second: a value is the average of the readings that overlap the request."
        " Pressure is the share of the time in which some task waited. If a value is far above the"
        " mean of the runs, in the last row, look there for the cause.",
        tables=[_table(result, place, found[place], readings) for place in places],
        absent="the requests have no start times",
    )


def _table(
    result: Result, place: ConditionKey, slow: Sequence[Slow], readings: "sql.Table | None"
) -> Table:
    from tare.samples.describe.metrics import Window, averages, averages_in

    during: Sequence[Mapping[Key, float]] = [{} for _ in slow]
    usual: Mapping[int, Mapping[Key, float]] = {}
    if readings is not None:
        during = averages_in(
            readings, [Window(request.run, request.due_ns, request.end_ns) for request in slow]
        )
        runs = [run for run in result.runs if result.places.get(run.run) == place]
        usual = averages(readings, runs)
    known = [key for key in READINGS if any(key in values for values in during)]
    runs_of = {run.run: run for run in result.measured}
    rows: list[Sequence[str]] = []
    for request, values in zip(slow, during, strict=True):
        run = runs_of[request.run]
        p50 = run.summaries.get("p50")
        rows.append(
            (
                _time_of_day(request.due_ns),
                str(request.run),
                str(run.block),
                duration(request.latency_ns),
                f"{request.latency_ns / p50:,.1f}" if p50 else "–",
                *_cells(known, values),
            )
        )
    if known:
        means = {
            key: fmean(values[key] for values in usual.values() if key in values)
            for key in known
            if any(key in values for values in usual.values())
        }
        rows.append(("mean of the runs", "–", "–", "–", "–", *_cells(known, means)))
    return Table(where(result, *place), [*COLUMNS, *(READINGS[key] for key in known)], rows)


def _cells(known: Sequence[Key], values: Mapping[Key, float]) -> Iterator[str]:
    for key in known:
        yield WRITE[key](values[key], None) if key in values else "–"


def _time_of_day(at_ns: int) -> str:
    second = datetime.fromtimestamp(at_ns // 10**9, UTC)
    return f"{second:%H:%M:%S}.{at_ns % 10**9 // 10**6:03d}"
