# SPDX-License-Identifier: Apache-2.0
import socket
import urllib.request
from pathlib import Path

import pytest
from bench.log import receivers
from bench.log.kieker_test import STREAM
from bench.log.sinks import METHOD, Program
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PROGRAM = Program(Path(), Path("java"))


def test_kiekers_records_are_counted_when_the_connection_ends() -> None:
    stream = STREAM.replace(b"acme.Shop.sell(long,int)", b"S.monitoredMethod(long,)")
    with receivers.kieker_receiver(PROGRAM) as sink:
        with socket.create_connection((receivers.LOCAL, sink.port)) as connection:
            for at in range(0, len(stream), 100):
                connection.sendall(stream[at : at + 100])
        assert sink.found(0) == 4


def test_what_is_not_kiekers_is_not_passed_over() -> None:
    with receivers.kieker_receiver(PROGRAM) as sink:
        with socket.create_connection((receivers.LOCAL, sink.port)) as connection:
            connection.sendall(STREAM + bytes([0, 0, 0, 8]) + bytes(8))
        with pytest.raises(ValueError, match="a record of type 8"):
            sink.found(0)


def test_a_receiver_that_nobody_has_come_to_ends() -> None:
    with receivers.kieker_receiver(PROGRAM) as sink:
        pass
    assert sink.found(0) == 0


def test_spans_of_the_method_are_counted() -> None:
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    for name in (f"Simple.{METHOD}", "another", f"Simple.{METHOD}"):
        spans.add().name = name
    with receivers.otlp_receiver(PROGRAM) as sink:
        url = f"http://{receivers.LOCAL}:{sink.port}/v1/traces"
        for _ in range(3):
            with urllib.request.urlopen(url, request.SerializeToString()) as answer:
                assert answer.status == 200
        assert sink.found(0) == 6
