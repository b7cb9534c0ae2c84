# SPDX-License-Identifier: Apache-2.0
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tare.errors import InputError, TareError
from tare.samples.fetch import Fetched
from tare.samples.fetch.decoder import decode
from tare.samples.read.span_file import read_spans

T = 1_700_000_000_000_000_000


def protobuf(numbers: range) -> bytes:
    """A request of OTLP."""
    request = ExportTraceServiceRequest()
    of = request.resource_spans.add()
    attribute = of.resource.attributes.add(key="service.name")
    attribute.value.string_value = "shop"
    spans = of.scope_spans.add().spans
    for number in numbers:
        spans.add(
            trace_id=number.to_bytes(16), span_id=number.to_bytes(8), name="pay", kind=3,
            start_time_unix_nano=T, end_time_unix_nano=T + number,
        )  # fmt: skip
    return bytes(request.SerializeToString())


def in_json(**more: Any) -> bytes:
    """The same with one span, in OTLP's JSON."""
    span = {"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "pay", "kind": 3} | more
    times = {"startTimeUnixNano": str(T), "endTimeUnixNano": str(T + 5)}
    attributes = [{"key": "service.name", "value": {"stringValue": "shop"}}]
    scopes = [{"spans": [times | span]}]
    of = {"resource": {"attributes": attributes}, "scopeSpans": scopes}
    return json.dumps({"resourceSpans": [of]}).encode()


def of_jaeger() -> bytes:
    """A span as Jaeger's collector writes it to a topic (`model.proto`)."""

    def field(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2, len(content)]) + content

    def tag(key: bytes, text: bytes) -> bytes:
        return field(1, key) + field(3, text)

    seconds = b"\x08\x80\xe2\xcf\xaa\x06"  # T
    return (
        field(1, bytes(15) + b"\x05") + field(2, bytes(7) + b"\x06") + field(3, b"pay")
        + field(6, seconds) + field(7, b"\x10\x07") + field(8, tag(b"span.kind", b"client"))
        + field(10, field(1, b"shop"))
    )  # fmt: skip


@pytest.mark.parametrize("message", [protobuf(range(7, 8)), in_json(), of_jaeger()])
def test_a_message_of_each_format_is_decoded(tmp_path: Path, message: bytes) -> None:
    out = tmp_path / "spans.arrow"
    assert decode([message], out) == Fetched(1)
    found = read_spans(out)
    assert [(kind.span, kind.spans) for kind in found.kinds] == [("shop: pay (client)", 1)]
    assert found.kinds[0].p50_ns in {5, 7}
    assert [path.name for path in tmp_path.iterdir()] == ["spans.arrow"]


def test_spans_of_all_messages_are_in_the_file(tmp_path: Path) -> None:
    messages = [protobuf(range(100 * number + 1, 100 * number + 101)) for number in range(50)]
    assert decode(messages, tmp_path / "spans.arrow") == Fetched(5_000)
    assert read_spans(tmp_path / "spans.arrow").spans == 5_000


def test_messages_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    messages = [b"\xff", protobuf(range(5)), b"{", b"{}", b'{"spanId": "x"}', b"", bytes(17 << 20)]
    found = decode(messages, tmp_path / "spans.arrow")
    assert found.spans == 4
    refused, empty, rejected = found.warnings
    assert refused.startswith("3 messages left out: the first: the request cannot be read")
    assert empty == "3 messages have no span of OTLP or Jaeger"
    assert rejected == "1 spans left out: they have no IDs of the right length"


def test_a_topic_without_spans_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no message of this time has a span; 2 messages have no"):
        decode([b"{}", b""], tmp_path / "spans.arrow")
    assert not [*tmp_path.iterdir()]


def test_a_broker_that_fails_leaves_no_file(tmp_path: Path) -> None:
    def failing() -> Iterator[bytes]:
        yield protobuf(range(5))
        raise TareError("the broker sent nothing")

    with pytest.raises(TareError, match="the broker sent nothing"):
        decode(failing(), tmp_path / "spans.arrow")
    assert not [*tmp_path.iterdir()]


def test_attributes_are_kept(tmp_path: Path) -> None:
    attributes = [{"key": "tier", "value": {"intValue": "5"}}]
    messages = [in_json(attributes=attributes), of_jaeger(), protobuf(range(3, 4))]
    decode(messages, tmp_path / "a.arrow", ["span.kind", "tier", "service.name"])
    found = read_spans(tmp_path / "a.arrow", "tier")
    assert {kind.span: kind.spans for kind in found.kinds} == {
        "shop: pay (client) [5]": 1,
        "shop: pay (client)": 2,
    }
    found = read_spans(tmp_path / "a.arrow", "service.name")
    assert {kind.span for kind in found.kinds} == {
        "shop: pay (client) [shop]",
        "shop: pay (client)",
    }
