# SPDX-License-Identifier: Apache-2.0
"""The partitions of a topic are read from offset to offset; tests/peers has a real broker."""

import sys
from collections import namedtuple
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tare.errors import InputError, TareError
from tare.samples.fetch import Window, kafka_topic
from tare.samples.fetch.kafka_topic import fetch, messages

Partition = namedtuple("Partition", "topic partition")
Record = tuple[int, int, bytes]
"""Offset, time in ms, value."""
FIELDS = ("offset", "timestamp", "value")
WINDOW = Window(100 * 10**6, 200 * 10**6)


class Consumer:
    """As much of kafka-python's as is used; each poll returns one record of each partition."""

    def __init__(self, *partitions: Sequence[Record], silent: bool = False) -> None:
        self.records = {Partition("spans", number): [*of] for number, of in enumerate(partitions)}
        self.places: dict[Partition, int] = {}
        self.paused: set[Partition] = set()
        self.silent = silent

    def partitions_for_topic(self, topic: str) -> set[int]:
        return {partition.partition for partition in self.records if partition.topic == topic}

    def end_offsets(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        return {
            partition: max((of[0] for of in self.records[partition]), default=-1) + 1
            for partition in partitions
        }

    def offsets_for_times(self, times: dict[Partition, int]) -> dict[Partition, Any]:
        def first(partition: Partition, time: int) -> Any:
            later = (of[0] for of in self.records[partition] if of[1] >= time)
            offset = next(later, None)
            return None if offset is None else SimpleNamespace(offset=offset)

        return {partition: first(partition, time) for partition, time in times.items()}

    def assign(self, partitions: Sequence[Partition]) -> None:
        assert all(partition in self.records for partition in partitions)

    def seek(self, partition: Partition, offset: int) -> None:
        self.places[partition] = offset

    def position(self, partition: Partition) -> int:
        return self.places[partition]

    def pause(self, partition: Partition) -> None:
        self.paused.add(partition)

    def poll(self, timeout_ms: int) -> dict[Partition, list[Any]]:
        assert timeout_ms > 0
        found = {}
        for partition, place in self.places.items():
            record = next((of for of in self.records[partition] if of[0] >= place), None)
            if record and partition not in self.paused and not self.silent:
                self.places[partition] = record[0] + 1
                found[partition] = [SimpleNamespace(**dict(zip(FIELDS, record, strict=True)))]
        return found


@pytest.fixture(autouse=True)
def _kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("kafka")
    vars(module)["TopicPartition"] = Partition
    monkeypatch.setitem(sys.modules, "kafka", module)


def values(*partitions: Sequence[Record], silent: bool = False) -> list[bytes]:
    return sorted(messages(Consumer(*partitions, silent=silent), "spans", WINDOW))


def test_messages_of_the_window_are_read_from_all_partitions() -> None:
    first = [(3, 99, b"before"), (4, 100, b"a"), (7, 150, b"b"), (8, 200, b"c"), (9, 201, b"d")]
    second = [(0, 120, b"e"), (1, 130, b"f")]
    assert values(first, second, []) == [b"a", b"b", b"c", b"e", b"f"]


def test_messages_of_the_window_may_follow_later_ones() -> None:
    late = 200 + kafka_topic.DISORDER_MS
    records = [(0, 150, b"a"), (1, 99, b"early"), (2, late, b"late"), (3, 180, b"b")]
    assert values(records) == [b"a", b"b"]
    assert values([*records, (4, late + 1, b"end"), (5, 180, b"too late")]) == [b"a", b"b"]


def test_messages_without_a_value_are_left_out() -> None:
    assert values([(0, 150, b""), (1, 150, b"a")]) == [b"a"]


def test_a_window_without_messages_ends_at_once() -> None:
    assert values([(0, 10, b"early")], [(0, 900, b"late")]) == []


def test_a_broker_that_sends_nothing_is_an_error() -> None:
    with pytest.raises(TareError, match="the broker sent nothing for 30 s"):
        values([(0, 150, b"a")], silent=True)


def test_a_topic_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(InputError, match="there is no such topic"):
        values()


def test_a_missing_library_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kafka", None)
    with pytest.raises(InputError, match=r"^kafka://a:1/b: kafka-python .* pip install 'tare"):
        fetch("a:1", "b", WINDOW, tmp_path / "spans.arrow")
