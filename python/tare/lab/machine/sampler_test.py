# SPDX-License-Identifier: Apache-2.0
import time
from collections.abc import Iterator

import pytest

from tare.lab.machine.sampler import PERIOD_NS, Sampler
from tare.lab.machine.snapshot import Snapshot


class Time:
    """A clock that goes on when a test says so, and a source that counts its nanoseconds."""

    def __init__(self) -> None:
        self.ns = 5
        self.has_level = True

    def now(self) -> int:
        return self.ns

    def read(self, snapshot: Snapshot) -> None:
        snapshot.count("cpu_user", self.ns)
        if self.has_level:
            snapshot.level("memory", self.ns / 2)


@pytest.fixture
def clock() -> Time:
    return Time()


def rows(sampler: Sampler, **subjects: str) -> Iterator[tuple[object, ...]]:
    for row in sampler.table(subjects or {"one": "machine"}).to_pylist():
        yield row["metric"], row["duration_ns"], row["value"], row["unit"]


def test_a_look_takes_a_sample_once_per_second(clock: Time) -> None:
    sampler = Sampler({"one": clock.read}, clock.now)
    for _ in range(35):
        clock.ns += PERIOD_NS // 10
        sampler.look()
    assert [row for row in rows(sampler) if row[0] == "cpu_user"] == [
        ("cpu_user", PERIOD_NS, PERIOD_NS, "ns")
    ] * 3


def test_a_load_shorter_than_a_second_has_one_reading(clock: Time) -> None:
    sampler = Sampler({"one": clock.read}, clock.now)
    clock.ns += 200_000_000
    sampler.look()
    sampler.sample()
    assert [*rows(sampler)] == [
        ("cpu_user", 200_000_000, 2e8, "ns"),
        ("memory", 200_000_000, 100_000_002.5, "bytes"),
    ]


def test_samples_at_one_moment_are_one_reading(clock: Time) -> None:
    sampler = Sampler({"one": clock.read}, clock.now)
    clock.ns += 7
    sampler.sample()
    sampler.sample()
    assert [row[1] for row in rows(sampler)] == [7, 7]


def test_a_pause_is_one_long_reading(clock: Time) -> None:
    sampler = Sampler({"one": clock.read}, clock.now)
    for pause in (3 * PERIOD_NS + 5, PERIOD_NS // 2, PERIOD_NS // 2):
        clock.ns += pause
        sampler.look()
    assert [row[1] for row in rows(sampler) if row[0] == "memory"] == [3 * PERIOD_NS + 5, PERIOD_NS]


def test_what_is_missing_at_times_is_absent_then(clock: Time) -> None:
    sampler = Sampler({"one": clock.read}, clock.now)
    for number in range(4):
        clock.ns += PERIOD_NS
        clock.has_level = number in (1, 3)
        sampler.sample()
    table = sampler.table({"one": "machine"}).to_pylist()
    starts = {metric: [row["start_ns"] for row in table if row["metric"] == metric]
              for metric in ("cpu_user", "memory")}  # fmt: skip
    assert starts["memory"] == starts["cpu_user"][1::2]


def test_a_clock_that_is_set_back_moves_no_reading(
    clock: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = Sampler({"one": clock.read}, clock.now)
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    for _ in range(2):
        clock.ns += PERIOD_NS
        sampler.sample()
    starts = [row["start_ns"] for row in sampler.table({"one": "machine"}).to_pylist()]
    assert starts[1] - starts[0] == PERIOD_NS
    assert starts[0] > 10**18


def test_a_source_that_fails_ends_nothing(clock: Time) -> None:
    def odd(snapshot: Snapshot) -> None:
        snapshot.count("interrupts", clock.ns)
        raise RuntimeError

    sampler = Sampler({"odd": odd, "one": clock.read}, clock.now)
    clock.ns += 4
    sampler.sample()
    assert [*rows(sampler, odd="service")] == [("interrupts", 4, 4.0, None)]
    assert len([*rows(sampler, odd="service", one="machine")]) == 3


def test_a_load_without_any_reading_has_an_empty_table(clock: Time) -> None:
    table = Sampler({"one": clock.read}, clock.now).table({"one": "machine"})
    assert table.num_rows == 0
    assert "metric" in table.column_names


def test_hours_of_readings(clock: Time) -> None:
    sampler = Sampler({"one": clock.read, "two": clock.read}, clock.now)
    for _ in range(20_000):
        clock.ns += PERIOD_NS
        sampler.look()
    assert sampler.table({"one": "machine", "two": "service"}).num_rows == 80_000
