# SPDX-License-Identifier: Apache-2.0
"""Spans from a topic of Kafka, as the OpenTelemetry Collector or Jaeger's collector writes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tare.errors import InputError, TareError
from tare.samples.fetch import Fetched, Window
from tare.samples.fetch.decoder import decode

if TYPE_CHECKING:
    from kafka import KafkaConsumer

SLOWEST_MS = 30_000


def fetch(broker: str, topic: str, window: Window, out: Path) -> Fetched:
    """Writes the spans of all messages whose time in Kafka is in the window.

    `broker` is HOST:PORT, or several with commas in between. No offset is committed, so consumers
    of the topic are not disturbed. Raises InputError if there is no such topic or no span in it,
    TareError if the broker fails.
    """
    source = f"kafka://{broker}/{topic}"
    try:
        from kafka import KafkaConsumer
        from kafka.errors import KafkaError
    except ImportError as error:
        raise InputError(
            f"{source}: kafka-python is not installed; pip install 'tare[kafka]'"
        ) from error
    try:
        with KafkaConsumer(
            bootstrap_servers=broker.split(","),
            bootstrap_timeout_ms=SLOWEST_MS,
            enable_auto_commit=False,
            allow_auto_create_topics=False,
            isolation_level="read_committed",
        ) as consumer:
            return decode(messages(consumer, topic, window), out)
    except (KafkaError, ValueError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise TareError(f"{source}: {reason}") from error
    except TareError as error:
        raise type(error)(f"{source}: {error}") from error


def messages(consumer: KafkaConsumer, topic: str, window: Window) -> Iterator[bytes]:
    """The values of all messages of the window, partition by partition as they arrive.

    The end is fixed at the beginning, so it ends although the topic grows. Raises InputError if
    there is no such topic, TareError if the broker sends nothing for 30 s.
    """
    from kafka import TopicPartition

    partitions = [TopicPartition(topic, one) for one in consumer.partitions_for_topic(topic)]
    if not partitions:
        raise InputError("there is no such topic")
    last = consumer.end_offsets(partitions)
    starts, ends = (
        consumer.offsets_for_times(dict.fromkeys(partitions, time))
        for time in (window.start_ns // 10**6, window.end_ns // 10**6 + 1)
    )
    pending = {}
    for one in partitions:
        end = min(ends[one].offset, last[one]) if ends[one] else last[one]
        if starts[one] and starts[one].offset < end:
            pending[one] = end
    consumer.assign([*pending])
    for one in pending:
        consumer.seek(one, starts[one].offset)
    while pending:
        found = consumer.poll(timeout_ms=SLOWEST_MS)
        for one, records in found.items():
            yield from (
                record.value
                for record in records
                if one in pending and record.offset < pending[one] and record.value
            )
        arrived = [one for one, end in pending.items() if consumer.position(one) >= end]
        if not found and not arrived:
            raise TareError(f"the broker sent nothing for {SLOWEST_MS // 1_000} s")
        for one in arrived:
            del pending[one]
            consumer.pause(one)
