# SPDX-License-Identifier: Apache-2.0
"""`tare spans fetch` reads what a real Jaeger has stored; Tare's receiver got the same requests."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests import in_process
from tests.peers.jaeger_server import Jaeger, jaeger
from tests.peers.kafka_broker import broker
from tests.peers.sent_spans import Row, Sent, otlp, rows_in, traces
from tests.spans.conftest import receiving

from tare.samples.fetch.jaeger_api import PAGE

pytestmark = pytest.mark.integration
SECOND = 10**9
SPANS_PER_REQUEST = 200


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Jaeger]:
    with jaeger(tmp_path) as running:
        yield running


def send(spans: Sequence[Sent], server: Jaeger, folder: Path) -> list[Row]:
    """Sends spans to Jaeger and to Tare's receiver; what the receiver has written."""
    requests = [
        otlp(spans[at : at + SPANS_PER_REQUEST]) for at in range(0, len(spans), SPANS_PER_REQUEST)
    ]
    with receiving(folder / "received.arrow") as receiver:
        for request in requests:
            assert receiver.post(request, "application/x-protobuf")[0] == 200
            server.send(request)
        code, out, err = receiver.stop()
    assert code == 0, err
    assert json.loads(out)["spans"] == len(spans)
    server.wait_for_spans(len(spans))
    return rows_in(folder / "received.arrow")


def fetch(server: Jaeger, out: Path, *more: str, service: str = "shop") -> in_process.Done:
    """Saves the traces of a service."""
    words = ("--service", service, "--out", out, "--json", *more)
    return in_process.tare("spans", "fetch", server.url, *words)


def fetched(server: Jaeger, out: Path, *more: str) -> list[Row]:
    """The spans of the traces of a service."""
    done = fetch(server, out, *more)
    assert (done.returncode, done.stderr) == (0, "")
    rows = rows_in(out)
    found = {"spans": len(rows), "traces": len({row[0] for row in rows}), "warnings": []}
    assert json.loads(done.stdout) == found
    return rows


def in_microseconds(rows: Sequence[Row]) -> list[Row]:
    """Jaeger's JSON has whole microseconds."""
    return sorted(
        (trace, own, parent, name, start // 1_000 * 1_000, duration // 1_000 * 1_000, ok)
        for trace, own, parent, name, start, duration, ok in rows
    )


def iso(ns: int) -> str:
    """A time as `--from` takes it."""
    return datetime.fromtimestamp(ns // SECOND, UTC).isoformat()


def test_fetched_traces_are_those_that_the_receiver_got(server: Jaeger, tmp_path: Path) -> None:
    number = 2 * PAGE + 200
    spans = [*traces(range(1, number + 1), time.time_ns() - 600 * SECOND, 100_000_000)]
    received = send(spans, server, tmp_path)
    assert received == sorted(span.row() for span in spans)
    rows = fetched(server, tmp_path / "traces.json")
    assert len({row[0] for row in rows}) == number
    assert rows == in_microseconds(received)
    shown = in_process.tare("spans", "show", tmp_path / "traces.json", "--json")
    (warning,) = shown.stderr.splitlines()  # about no lost parent
    assert "clocks differ" in warning


def test_traces_of_the_window_are_fetched(server: Jaeger, tmp_path: Path) -> None:
    now = time.time_ns() // SECOND * SECOND
    spans = [*traces(range(1, 61), now - 600 * SECOND, 2 * SECOND)]
    received = send(spans, server, tmp_path)
    start, end = now - 561 * SECOND, now - 520 * SECOND
    inside = {
        f"{span.trace:032x}"
        for span in spans
        if start <= span.start_ns <= end and span.service == "shop"
    }
    assert len(inside) == 21
    rows = fetched(server, tmp_path / "traces.json", "--from", iso(start), "--to", iso(end))
    assert rows == in_microseconds([row for row in received if row[0] in inside])


def test_too_many_traces_of_the_same_time_are_an_error(server: Jaeger, tmp_path: Path) -> None:
    now = time.time_ns() // 1_000 * 1_000
    send([*traces(range(1, PAGE + 1), now - SECOND, 0)], server, tmp_path)
    done = fetch(server, tmp_path / "traces.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"tare: {server.url}: one microsecond has {PAGE} traces or more\n"
    assert not (tmp_path / "traces.json").exists()


def test_a_service_without_traces_is_an_error(server: Jaeger, tmp_path: Path) -> None:
    send([*traces([1], time.time_ns() - SECOND, 0)], server, tmp_path)
    done = fetch(server, tmp_path / "traces.json", service="käse & co")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"tare: {server.url}: no trace of the service 'käse & co' in this time;"
        f" {server.url}/api/services lists the services\n"
    )


def test_another_port_of_jaeger_is_an_error(server: Jaeger, tmp_path: Path) -> None:
    done = fetch(replace(server, url=server.otlp), tmp_path / "traces.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"tare: {server.otlp}: HTTP status 404: ")
    assert done.stderr.count("\n") == 1
    # The port of its metrics answers any address with a status in JSON.
    admin = server.metrics.removesuffix("/metrics")
    done = fetch(replace(server, url=admin), tmp_path / "traces.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"tare: {admin}: the answer is not a list of traces in JSON")
    assert done.stderr.count("\n") == 1


def test_spans_that_jaeger_writes_to_kafka_are_those_that_the_receiver_got(tmp_path: Path) -> None:
    spans = [*traces(range(1, 301), time.time_ns() - 600 * SECOND, 10_000_000)]
    with broker(tmp_path) as kafka:
        kafka.create("jaeger-spans", 3)
        producer = f"--kafka.producer.brokers={kafka.address}"
        with jaeger(tmp_path, producer, storage="memory,kafka") as server:
            received = send(spans, server, tmp_path)
        # Jaeger has sent everything before it ended.
        source, out = kafka.source("jaeger-spans"), tmp_path / "spans.arrow"
        done = in_process.tare("spans", "fetch", source, "--out", out)
    assert (done.returncode, done.stderr) == (0, "")
    # Its collector stores a span of 0 ns as one of 1 ns.
    assert rows_in(out) == [
        (trace, own, parent, name, start, max(duration, 1), ok)
        for trace, own, parent, name, start, duration, ok in received
    ]
