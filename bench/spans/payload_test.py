# SPDX-License-Identifier: Apache-2.0
from bench.spans.payload import SERVICES, SPANS, TRACES, batch, framed
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def test_a_batch_has_whole_traces_through_all_services() -> None:
    request = ExportTraceServiceRequest.FromString(batch())
    spans = [span for of in request.resource_spans for span in of.scope_spans[0].spans]
    assert len(spans) == SPANS == 512
    assert {len(span.attributes) for span in spans} == {10}
    assert len({span.trace_id for span in spans}) == TRACES
    ids = {span.span_id for span in spans}
    assert len(ids) == SPANS
    assert sum(not span.parent_span_id for span in spans) == TRACES
    assert {span.parent_span_id for span in spans} - ids == {b""}
    names = [of.resource.attributes[0].value.string_value for of in request.resource_spans]
    assert names == [*SERVICES]


def test_a_message_of_grpc_has_its_length() -> None:
    assert framed(b"abc") == b"\0\0\0\0\x03abc"
