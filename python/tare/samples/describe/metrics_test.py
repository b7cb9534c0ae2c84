# SPDX-License-Identifier: Apache-2.0
"""Averages of windows against a slow literal formula, and readings that strangers may write."""

import random
from pathlib import Path

import pyarrow as pa
import pytest

from tare.samples.describe.metrics import (
    ALWAYS,
    CPU_TIMES,
    LEVELS,
    Window,
    averages,
    averages_in,
    courses,
    readings,
)
from tare.samples.engines.checked import checked
from tare.samples.manifest import RunEntry
from tare.samples.sql.engine import connect
from tare.samples.sql.table import Table

SECOND = 10**9
Row = tuple[int, str, str, int, int, float]
"""Run, subject, metric, start and length of a reading, and its value."""


def table(rows: list[Row], slices: list[int | None] | None = None) -> Table:
    names = ("run", "subject", "metric", "start_ns", "duration_ns", "value")
    columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    columns["slice"] = pa.array(slices or [None] * len(rows), pa.int32())
    return connect().create_table("machine", pa.table(columns))


def run(number: int, start: int | None = None, length: int | None = None) -> RunEntry:
    return RunEntry(
        run=number, block=1, environment="host", condition="one", valid=True, started_ns=start,
        duration_ns=length,
    )  # fmt: skip


def found(rows: list[Row], *runs: RunEntry) -> dict[int, dict[tuple[str, str], float]]:
    per_second = readings(table(rows))
    assert per_second is not None
    return averages(per_second, runs)


def literal(rows: list[Row], entry: RunEntry, metric: str) -> float | None:
    """The average of a metric: every nanosecond of the window has the value of its reading."""
    assert entry.started_ns is not None
    assert entry.duration_ns is not None
    until = entry.started_ns + entry.duration_ns
    total = time = 0.0
    for number, _, name, start, length, value in rows:
        if (number, name) == (entry.run, metric):
            part = min(start + length, until) - max(start, entry.started_ns)
            if part > 0:
                total += part * (value if metric in LEVELS else value / length * SECOND)
                time += part
    return total / time if time else None


@pytest.mark.parametrize("seed", range(5))
def test_averages_are_those_of_a_literal_formula(seed: int) -> None:
    chance = random.Random(seed)
    rows: list[Row] = []
    for number in (1, 2):
        start = 1_700_000_000 * SECOND
        for _ in range(40):
            length = chance.randrange(1, 2 * SECOND)
            rows += [
                (number, "machine", metric, start, length, chance.random() * 1e6)
                for metric in ("interrupts", "memory_used")
                if chance.random() < 0.9
            ]
            start += length
    for _ in range(5):
        first = 1_700_000_000 * SECOND + chance.randrange(-SECOND, 30 * SECOND)
        entry = run(chance.choice((1, 2)), first, chance.randrange(0, 20 * SECOND))
        values = found(rows, entry).get(entry.run, {})
        for metric in ("interrupts", "memory_used"):
            expected = literal(rows, entry, metric)
            assert values.get(("machine", metric)) == (expected and pytest.approx(expected))


def test_a_window_shorter_than_a_reading_has_its_value() -> None:
    rows = [(1, "service", "cpu_user", 0, SECOND // 2, 1e8), (1, "service", "memory", 0, 100, 7.0)]
    values = found(rows, run(1, 40, 10))[1]
    assert values == {("service", "cpu_user"): pytest.approx(2e8), ("service", "memory"): 7.0}


def test_a_run_without_times_counts_as_a_whole() -> None:
    rows = [(1, "machine", "interrupts", at * SECOND, SECOND, at + 1.0) for at in range(3)]
    assert found(rows, run(1))[1] == {("machine", "interrupts"): 2.0}


def test_cpu_times_of_the_machine_are_shares_of_their_sum() -> None:
    rows = [
        (1, "machine", metric, 0, SECOND, 1e9 * (at + 1)) for at, metric in enumerate(CPU_TIMES)
    ]
    rows.append((1, "service", "cpu_user", 0, SECOND, 5e8))
    values = found(rows, run(1))[1]
    assert values["machine", "cpu_user"] == pytest.approx(1 / 21)
    assert values["machine", "cpu_idle"] == pytest.approx(6 / 21)
    assert values["service", "cpu_user"] == pytest.approx(5e8)


def test_without_one_of_the_cpu_times_no_share_is_known() -> None:
    rows = [(1, "machine", metric, 0, SECOND, 1e9) for metric in CPU_TIMES[1:]]
    assert found(rows, run(1)).get(1, {}) == {}


def test_readings_of_slices_are_others() -> None:
    rows = [(1, "machine", "steal", 0, SECOND, 1.0), (1, "machine", "interrupts", 0, SECOND, 1.0)]
    per_second = readings(table(rows, slices=[0, None]))
    assert per_second is not None
    assert averages(per_second, [run(1)])[1] == {("machine", "interrupts"): 1.0}


@pytest.mark.parametrize(
    ("start", "length"), [(-1, 5), (ALWAYS, ALWAYS), (0, 0), (2**63 - 1, 2**62), (0, -5)]
)
def test_readings_at_impossible_times_are_none(start: int, length: int) -> None:
    rows = [(1, "machine", "interrupts", start, length, 1.0)]
    assert found(rows, run(1), run(2, 2**63, 2**63)) == {}


def test_a_table_without_times_has_no_readings() -> None:
    columns = {"run": [1], "slice": [0], "duration_ns": [1], "subject": ["machine"]}
    columns |= {"metric": ["steal"], "value": [1.0]}
    assert readings(connect().create_table("machine", pa.table(columns))) is None


def test_no_runs_have_no_averages() -> None:
    assert found([(1, "machine", "interrupts", 0, SECOND, 1.0)]) == {}


def test_only_an_offset_of_the_clock_can_be_negative(tmp_path: Path) -> None:
    rows = [(1, "machine", metric, 0, SECOND, -5.0) for metric in ("clock_offset", "interrupts")]
    kept = checked(table(rows), "machine", str(tmp_path))
    assert [row["metric"] for row in kept.rows()] == ["clock_offset"]


def test_a_course_has_few_points_and_keeps_the_mean() -> None:
    rows: list[Row] = []
    for at in range(20_000):
        rows.append((3, "machine", "interrupts", at * SECOND, SECOND, float(at)))
        rows.append((3, "machine", "memory_used", at * SECOND, SECOND, 4.0))
    per_second = readings(table(rows))
    assert per_second is not None
    keys = [("machine", "interrupts"), ("machine", "memory_used"), ("machine", "frequency")]
    course = courses(per_second, [3], keys, 100)
    assert set(course) == {*keys[:2]}
    moments = course["machine", "interrupts"][3]
    assert 100 <= len(moments) <= 101
    assert [moment.at_ns for moment in moments] == sorted(moment.at_ns for moment in moments)
    assert sum(moment.value for moment in moments) / len(moments) == pytest.approx(9999.5)
    assert {moment.value for moment in course["machine", "memory_used"][3]} == {4.0}


def test_windows_of_one_run_have_their_own_averages() -> None:
    rows: list[Row] = [
        (number, "machine", "interrupts", second * SECOND, SECOND, 10 * number + second)
        for number in (1, 2)
        for second in range(3)
    ]
    per_second = readings(table(rows))
    assert per_second is not None
    windows = [Window(1, 0, 1), Window(1, SECOND, 3 * SECOND), Window(2, 5, 5), Window(2, -9, -8)]
    found = averages_in(per_second, windows)
    assert [values.get(("machine", "interrupts")) for values in found] == [10, 11.5, 20, None]
    assert averages_in(per_second, []) == []
