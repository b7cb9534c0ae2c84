# SPDX-License-Identifier: Apache-2.0
"""Spans that tests send, and the same spans as they must be in a file."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tare.samples import read_load_output

KINDS = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
ERROR = 2
COLUMNS = ("trace_id", "span_id", "parent_id", "span", "start_ns", "duration_ns", "ok")
Row = tuple[str, str, str, str, int, int, bool]


@dataclass(frozen=True)
class Sent:
    """A span. IDs are numbers; 0 is no parent and no link."""

    trace: int
    number: int
    service: str
    name: str
    kind: str
    start_ns: int
    duration_ns: int
    parent: int = 0
    linked_trace: int = 0
    failed: bool = False

    def row(self, unit_ns: int = 1) -> Row:
        """What is in a file that stores times in whole units."""
        kind = "" if self.kind == "internal" else f" ({self.kind})"
        return (
            f"{self.trace:032x}",
            f"{self.number:016x}",
            f"{self.parent:016x}" if self.parent else "",
            f"{self.service}: {self.name}{kind}",
            self.start_ns // unit_ns * unit_ns,
            self.duration_ns // unit_ns * unit_ns,
            not self.failed,
        )


def traces(numbers: Iterable[int], first_ns: int, gap_ns: int) -> Iterator[Sent]:
    """Traces of a purchase: some call the bank twice, fail, have a link, or another clock."""
    for number in numbers:
        start = first_ns + gap_ns * number
        own = 8 * number
        trace = number << 64 | own
        shop = Sent(trace, own + 1, "shop", "POST /buy", "server", start, 9_000_007 + number)
        yield Sent(**vars(shop) | {"linked_trace": trace + 1}) if number % 5 == 0 else shop
        yield Sent(trace, own + 2, "shop", "count", "internal", start + 5, 0, own + 1)
        for call in range(1 + number % 2):
            at, client = start + 1_000_003 * (call + 1), own + 3 + 2 * call
            yield Sent(trace, client, "shop", "POST /pay", "client", at, 900_001 + number, own + 1)
            # The clock of the bank's host is an hour behind.
            late = at - 3_600 * 10**9 if number % 7 == 0 else at + 333
            yield Sent(
                trace, client + 1, "bank", "POST /pay", "server", late, 500_009 + 11 * number,
                client, failed=number % 3 == 0,
            )  # fmt: skip


def otlp(spans: Iterable[Sent]) -> bytes:
    """A request of OTLP in protobuf."""
    request = ExportTraceServiceRequest()
    scopes = {}
    for sent in spans:
        if sent.service not in scopes:
            of = request.resource_spans.add()
            of.resource.attributes.add(key="service.name").value.string_value = sent.service
            scopes[sent.service] = of.scope_spans.add()
        span = scopes[sent.service].spans.add(
            trace_id=sent.trace.to_bytes(16), span_id=sent.number.to_bytes(8), name=sent.name,
            kind=KINDS[sent.kind], start_time_unix_nano=sent.start_ns,
            end_time_unix_nano=sent.start_ns + sent.duration_ns,
        )  # fmt: skip
        if sent.parent:
            span.parent_span_id = sent.parent.to_bytes(8)
        if sent.linked_trace:
            span.links.add(trace_id=sent.linked_trace.to_bytes(16), span_id=(1).to_bytes(8))
        if sent.failed:
            span.status.code = ERROR
    return bytes(request.SerializeToString())


def otlp_json(spans: Iterable[Sent]) -> bytes:
    """The same in JSON."""
    services: dict[str, list[dict[str, object]]] = {}
    for sent in spans:
        services.setdefault(sent.service, []).append(
            {
                "traceId": f"{sent.trace:032x}", "spanId": f"{sent.number:016x}",
                "parentSpanId": f"{sent.parent:016x}" if sent.parent else "", "name": sent.name,
                "kind": KINDS[sent.kind], "startTimeUnixNano": str(sent.start_ns),
                "endTimeUnixNano": str(sent.start_ns + sent.duration_ns),
                "status": {"code": ERROR if sent.failed else 0},
            }
        )  # fmt: skip
    return json.dumps(
        {
            "resourceSpans": [
                {
                    "resource": {
                        "attributes": [{"key": "service.name", "value": {"stringValue": service}}]
                    },
                    "scopeSpans": [{"spans": of}],
                }
                for service, of in services.items()
            ]
        }
    ).encode()


def jaeger(span: Sent) -> bytes:
    """A span as Jaeger's collector writes it to a topic.

    Source: jaegertracing/jaeger-idl, `proto/api_v2/model.proto`.
    """
    trace = span.trace.to_bytes(16)
    references = [
        # A link follows the reference to the parent, and has the type FOLLOWS_FROM.
        *([_field(1, trace) + _field(2, span.parent.to_bytes(8))] if span.parent else []),
        *(
            [_field(1, span.linked_trace.to_bytes(16)) + _field(2, (1).to_bytes(8)) + b"\x18\x01"]
            if span.linked_trace
            else []
        ),
    ]
    tags = [_field(1, b"span.kind") + _field(3, span.kind.encode())]
    if span.failed:
        tags.append(_field(1, b"error") + b"\x10\x01\x20\x01")
    return b"".join(
        [
            _field(1, trace), _field(2, span.number.to_bytes(8)), _field(3, span.name.encode()),
            *(_field(4, reference) for reference in references), _field(6, _time(span.start_ns)),
            _field(7, _time(span.duration_ns)), *(_field(8, tag) for tag in tags),
            _field(10, _field(1, span.service.encode())),
        ]
    )  # fmt: skip


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def _time(ns: int) -> bytes:
    """A timestamp or a duration: seconds, and the nanoseconds of the last second."""
    seconds, rest = divmod(ns, 10**9)
    return b"\x08" + _varint(seconds) + b"\x10" + _varint(rest)


def rows_in(file: Path) -> list[Row]:
    """The spans of a file, as `tare compare` reads them."""
    table = read_load_output(file)
    assert not table.schema.metadata[b"warnings"]
    columns = [table[name].to_pylist() for name in COLUMNS]
    return sorted(
        (trace, span, parent or "", *rest)
        for trace, span, parent, *rest in zip(*columns, strict=True)
    )
