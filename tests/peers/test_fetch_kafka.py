# SPDX-License-Identifier: Apache-2.0
"""`tare spans fetch` reads topics of a real broker of Kafka."""

import itertools
import json
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from tests import in_process
from tests.peers.kafka_broker import Broker, Message, broker
from tests.peers.programs import LOCAL
from tests.peers.sent_spans import Row, Sent, jaeger, otlp, otlp_json, rows_in, traces

from tare.lab.environments.ports import free_port
from tare.samples.fetch import kafka_topic

pytestmark = pytest.mark.integration
PARTITIONS = 3


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker(tmp_path_factory.mktemp("kafka")) as running:
        yield running


def spans_of(numbers: Iterable[int]) -> list[Sent]:
    """The spans of traces of the last minutes."""
    return [*traces(numbers, time.time_ns() - 600 * 10**9, 10**6)]


def expected(spans: Iterable[Sent]) -> list[Row]:
    """What must be in the file."""
    return sorted(span.row() for span in spans)


def fetch(source: str, out: Path, *more: str) -> in_process.Done:
    """Reads a topic."""
    return in_process.tare("spans", "fetch", source, "--out", out, "--json", *more)


def fetched(source: str, out: Path, *more: str) -> list[Row]:
    """The spans of a topic that is read without a warning."""
    done = fetch(source, out, *more)
    assert (done.returncode, done.stderr) == (0, "")
    rows = rows_in(out)
    assert json.loads(done.stdout) == {"spans": len(rows), "traces": None, "warnings": []}
    return rows


def in_requests(encode: Callable[[Iterable[Sent]], bytes]) -> Callable[[list[Sent]], list[bytes]]:
    """One message per 40 spans."""
    return lambda spans: [encode(spans[at : at + 40]) for at in range(0, len(spans), 40)]


@pytest.mark.parametrize(
    ("name", "encode"),
    [
        ("otlp_proto", in_requests(otlp)),
        ("otlp_json", in_requests(otlp_json)),
        ("jaeger_proto", lambda spans: [*map(jaeger, spans)]),
    ],
)
def test_all_spans_of_a_topic_are_read(
    kafka: Broker, tmp_path: Path, name: str, encode: Callable[[list[Sent]], list[bytes]]
) -> None:
    spans = spans_of(range(1, 501))
    kafka.create(name, PARTITIONS)
    messages = encode(spans)
    kafka.produce(name, (Message(message, at % PARTITIONS) for at, message in enumerate(messages)))
    assert fetched(kafka.source(name), tmp_path / "spans.arrow") == expected(spans)
    shown = in_process.tare("spans", "show", tmp_path / "spans.arrow", "--json")
    (file,) = json.loads(shown.stdout)["files"]
    assert file["traces"] == 500
    assert {kind["span"]: kind["spans"] for kind in file["kinds"]} == {
        "shop: POST /buy (server)": 500, "shop: count": 500,
        "shop: POST /pay (client)": 750, "bank: POST /pay (server)": 750,
    }  # fmt: skip


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_messages_are_read(kafka: Broker, tmp_path: Path, codec: str) -> None:
    spans = spans_of(range(1, 101))
    kafka.create(codec, compression=codec)
    kafka.produce(codec, [Message(otlp(spans))])
    assert fetched(kafka.source(codec), tmp_path / "spans.arrow") == expected(spans)


def test_messages_of_the_window_are_read_in_any_order(kafka: Broker, tmp_path: Path) -> None:
    now = time.time_ns() // 10**6
    # Producers set the times of messages, and the broker stores messages as they arrive.
    minutes = {40: False, 29: True, 30.5: False, 25: True, 19.5: False, 21: True, 10: False}
    spans = {ago: spans_of([at]) for at, ago in enumerate(minutes, 1)}
    kafka.create("window")
    kafka.produce(
        "window",
        (Message(otlp(of), time_ms=now - int(60_000 * ago)) for ago, of in spans.items()),
    )
    rows = fetched(kafka.source("window"), tmp_path / "spans.arrow", "--from", "30m", "--to", "20m")
    inside = [span for ago, of in spans.items() if minutes[ago] for span in of]
    assert rows == expected(inside)


def test_a_topic_that_grows_is_read_up_to_its_end(kafka: Broker, tmp_path: Path) -> None:
    spans = spans_of(range(1, 101))
    kafka.create("growing", PARTITIONS)
    kafka.produce("growing", (Message(otlp([span]), at % 3) for at, span in enumerate(spans)))
    ended = Event()

    def grow() -> None:
        with kafka.producer() as producer:
            for number in itertools.count(101):
                if ended.is_set():
                    break
                producer.send("growing", otlp(spans_of([number])), partition=number % 3).get()

    thread = Thread(target=grow)
    thread.start()
    try:
        rows = fetched(kafka.source("growing"), tmp_path / "spans.arrow")
    finally:
        ended.set()
        thread.join()
    assert {*expected(spans)} <= {*rows}


def test_only_committed_messages_are_read(kafka: Broker, tmp_path: Path) -> None:
    committed, aborted, pending = (spans_of(range(at, at + 50)) for at in (1, 51, 101))
    kafka.create("transactions")
    with kafka.producer(transactional_id="shop") as producer:
        producer.init_transactions()
        for spans, end in (
            (aborted, producer.abort_transaction),
            (committed, producer.commit_transaction),
        ):
            producer.begin_transaction()
            producer.send("transactions", otlp(spans)).get()
            end()
        # The last message is the marker of the end, which is no record.
        assert fetched(kafka.source("transactions"), tmp_path / "1.arrow") == expected(committed)
        producer.begin_transaction()
        producer.send("transactions", otlp(pending)).get()
        assert fetched(kafka.source("transactions"), tmp_path / "2.arrow") == expected(committed)
        producer.abort_transaction()


def test_the_first_of_several_brokers_may_be_down(kafka: Broker, tmp_path: Path) -> None:
    spans = spans_of([1])
    kafka.create("several")
    kafka.produce("several", [Message(otlp(spans))])
    source = f"kafka://{LOCAL}:{free_port(LOCAL)},{kafka.address}/several"
    assert fetched(source, tmp_path / "spans.arrow") == expected(spans)


def test_other_messages_are_counted(kafka: Broker, tmp_path: Path) -> None:
    spans = spans_of([1])
    kafka.create("mixed")
    kafka.produce("mixed", map(Message, (b"", b"{}", b"\xff", otlp(spans))))
    done = fetch(kafka.source("mixed"), tmp_path / "spans.arrow")
    assert done.returncode == 0
    refused, empty = json.loads(done.stdout)["warnings"]
    assert refused.startswith("1 messages left out: the first: the request cannot be read")
    assert empty == "1 messages have no span of OTLP or Jaeger"
    assert done.stderr == f"warning: {refused}\nwarning: {empty}\n"
    assert rows_in(tmp_path / "spans.arrow") == expected(spans)


def test_an_absent_topic_is_an_error_and_is_not_created(kafka: Broker, tmp_path: Path) -> None:
    done = fetch(kafka.source("absent"), tmp_path / "spans.arrow")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"tare: {kafka.source('absent')}: there is no such topic\n"
    assert "absent" not in kafka.topics()
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("messages", [[], [Message(b"", time_ms=1)]])
def test_a_topic_without_spans_is_an_error(
    kafka: Broker, tmp_path: Path, messages: list[Message]
) -> None:
    topic = f"empty-{len(messages)}"
    kafka.create(topic)
    kafka.produce(topic, messages)
    done = fetch(kafka.source(topic), tmp_path / "spans.arrow")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"tare: {kafka.source(topic)}: no message of this time has a span\n"
    assert not [*tmp_path.iterdir()]


def test_a_broker_that_does_not_listen_is_an_error(tmp_path: Path) -> None:
    source = f"kafka://{LOCAL}:{free_port(LOCAL)}/spans"
    done = fetch(source, tmp_path / "spans.arrow")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"tare: {source}: Connection refused; is it a broker of Kafka?\n"
    assert not [*tmp_path.iterdir()]


def test_a_server_that_does_not_answer_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_topic, "SLOWEST_MS", 1_000)
    with socket.create_server((LOCAL, 0)) as server:
        source = f"kafka://{LOCAL}:{server.getsockname()[1]}/spans"
        done = fetch(source, tmp_path / "spans.arrow")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"tare: {source}: no answer in 1 s; is it a broker of Kafka?\n"
    assert not [*tmp_path.iterdir()]


def test_a_broker_that_stops_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file is written, because it would be a part of the topic that looks whole."""
    monkeypatch.setattr(kafka_topic, "SLOWEST_MS", 5_000)
    read = kafka_topic.messages

    def interrupted(*arguments: Any) -> Iterator[bytes]:
        for message in read(*arguments):
            yield message
            process.kill()
            process.wait()

    monkeypatch.setattr(kafka_topic, "messages", interrupted)
    with broker(tmp_path) as own:
        process = own.process
        own.create("long")
        # More than one answer of the broker can have.
        own.produce("long", (Message(bytes(900_000)) for _ in range(100)))
        out = tmp_path / "out" / "spans.arrow"
        out.parent.mkdir()
        done = fetch(own.source("long"), out)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"tare: {own.source('long')}: the broker sent nothing for 5 s\n"
    assert not [*out.parent.iterdir()]
