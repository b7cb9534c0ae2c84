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
        self.records = {Partition("spans", one): [*of] for one, of in enumerate(partitions)}
        self.places: dict[Partition, int] = {}
        self.paused: set[Partition] = set()
        self.silent = silent

    def partitions_for_topic(self, topic: str) -> set[int]:
        return {one.partition for one in self.records if one.topic == topic}

    def end_offsets(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        return {one: max((of[0] for of in self.records[one]), default=-1) + 1 for one in partitions}

    def offsets_for_times(self, times: dict[Partition, int]) -> dict[Partition, Any]:
        def first(one: Partition, time: int) -> Any:
            later = (of[0] for of in self.records[one] if of[1] >= time)
            offset = next(later, None)
            return None if offset is None else SimpleNamespace(offset=offset)

        return {one: first(one, time) for one, time in times.items()}

    def assign(self, partitions: Sequence[Partition]) -> None:
        assert all(one in self.records for one in partitions)

    def seek(self, one: Partition, offset: int) -> None:
        self.places[one] = offset

    def position(self, one: Partition) -> int:
        return self.places[one]

    def pause(self, one: Partition) -> None:
        self.paused.add(one)

    def poll(self, timeout_ms: int) -> dict[Partition, list[Any]]:
        assert timeout_ms > 0
        found = {}
        for one, place in self.places.items():
            record = next((of for of in self.records[one] if of[0] >= place), None)
            if record and one not in self.paused and not self.silent:
                self.places[one] = record[0] + 1
                found[one] = [SimpleNamespace(**dict(zip(FIELDS, record, strict=True)))]
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
