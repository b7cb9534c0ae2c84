# SPDX-License-Identifier: Apache-2.0
"""Spans from a topic of Kafka, as the OpenTelemetry Collector or Jaeger's collector writes it."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tare.errors import InputError, TareError
from tare.samples.fetch import Fetched, Window
from tare.samples.fetch.decoder import decode

if TYPE_CHECKING:
    from kafka import KafkaConsumer

PORT = 9092
SLOWEST_MS = 30_000
POLL_MS = 500
DISORDER_MS = 60_000
"""Several producers set the times of messages, so these are not in order."""


def fetch(
    broker: str, topic: str, window: Window, out: Path, attributes: Sequence[str] = ()
) -> Fetched:
    """Writes the spans of all messages whose time in Kafka is in the window.

    `broker` is HOST:PORT, or several with commas in between. No offset is committed, so consumers
    of the topic are not disturbed. `attributes` are kept. Raises InputError if there is no such
    topic or no span in it, TareError if the broker fails.
    """
    source = f"kafka://{broker}/{topic}"
    try:
        from kafka import KafkaConsumer
        from kafka.errors import KafkaError, KafkaTimeoutError
    except ImportError as error:
        raise InputError(
            f"{source}: kafka-python is not installed; pip install 'tare[kafka]'"
        ) from error
    try:
        _connect(broker)
        with KafkaConsumer(
            bootstrap_servers=broker.split(","),
            bootstrap_timeout_ms=SLOWEST_MS,
            request_timeout_ms=SLOWEST_MS,
            enable_auto_commit=False,
            allow_auto_create_topics=False,
            # The broker may delete old messages after the offsets were asked for.
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer:
            return decode(messages(consumer, topic, window), out, attributes)
    except KafkaTimeoutError as error:
        raise TareError(
            f"{source}: no answer in {SLOWEST_MS // 1_000} s; is it a broker of Kafka?"
        ) from error
    except (KafkaError, ValueError) as error:
        raise TareError(f"{source}: {' '.join(str(error).split())}") from error
    except TareError as error:
        raise type(error)(f"{source}: {error}") from error


def _connect(broker: str) -> None:
    """Raises TareError if no broker listens; the library would try again for 30 s."""
    reason: object = None
    for address in broker.split(","):
        parts = urlsplit(f"//{address}")
        try:
            socket.create_connection(
                (parts.hostname or "", parts.port or PORT), SLOWEST_MS / 1_000
            ).close()
        except OSError as error:
            reason = error.strerror or error
        else:
            return
    raise TareError(f"{reason}; is it a broker of Kafka?")


def messages(consumer: KafkaConsumer, topic: str, window: Window) -> Iterator[bytes]:
    """The values of all messages of the window, partition by partition as they arrive.

    The end is fixed at the beginning, so it ends although the topic grows. Messages of the window
    that follow a message more than a minute later than its end may be missing. Raises InputError
    if there is no such topic, TareError if the broker sends nothing for 30 s.
    """
    from kafka import TopicPartition

    partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]
    if not partitions:
        raise InputError("there is no such topic")
    last = consumer.end_offsets(partitions)
    start_ms, end_ms = window.start_ns // 10**6, window.end_ns // 10**6
    starts, ends = (
        consumer.offsets_for_times(dict.fromkeys(partitions, time))
        for time in (start_ms, end_ms + DISORDER_MS + 1)
    )
    pending = {}
    for partition in partitions:
        end = min(ends[partition].offset, last[partition]) if ends[partition] else last[partition]
        if starts[partition] and starts[partition].offset < end:
            pending[partition] = end
    consumer.assign([*pending])
    for partition in pending:
        consumer.seek(partition, starts[partition].offset)
    positions: dict[TopicPartition, int] = {}
    silent_ms = 0
    while pending:
        # Markers of transactions move the position, but are no records: a long poll waits for more.
        for partition, records in consumer.poll(timeout_ms=POLL_MS).items():
            yield from (
                record.value
                for record in records
                if partition in pending
                and record.offset < pending[partition]
                and start_ms <= record.timestamp <= end_ms
                and record.value
            )
        before, positions = (
            positions,
            {partition: consumer.position(partition) for partition in pending},
        )
        silent_ms = silent_ms + POLL_MS if positions == before else 0
        if silent_ms >= SLOWEST_MS:
            raise TareError(f"the broker sent nothing for {SLOWEST_MS // 1_000} s")
        for partition in [
            partition for partition, end in pending.items() if positions[partition] >= end
        ]:
            del pending[partition]
            consumer.pause(partition)
