# SPDX-License-Identifier: Apache-2.0
"""A batch of spans, as an agent that gathers the spans of several services sends it."""

TRACES = 64
SERVICES = ("gateway", "order", "payment", "user", "stock", "mail", "search", "cache")
SPANS = TRACES * len(SERVICES)
START = 1_700_000_000_000_000_000
SERVER = 2


def batch() -> bytes:
    """A request of OTLP in protobuf: 512 spans with 10 attributes each, of 64 traces through 8
    services."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest()
    for depth, service in enumerate(SERVICES):
        of = request.resource_spans.add()
        _fill(
            of.resource.attributes,
            {
                "service.name": service,
                "host.name": f"{service}-7d4b9c6f5-x2x{depth}z",
                "telemetry.sdk.language": "java",
                "telemetry.sdk.name": "opentelemetry",
                "process.pid": 4_211 + depth,
            },
        )
        scope = of.scope_spans.add()
        scope.scope.name = "io.opentelemetry.tomcat-10.0"
        for trace in range(TRACES):
            start = START + 1_000_000 * trace + 50_000 * depth
            span = scope.spans.add(
                trace_id=(trace + 1).to_bytes(16),
                span_id=_id(trace, depth),
                parent_span_id=_id(trace, depth - 1) if depth else b"",
                name=f"GET /{service}/{{id}}",
                kind=SERVER,
                start_time_unix_nano=start,
                end_time_unix_nano=start + 900_000 - 100_000 * depth,
            )
            _fill(
                span.attributes,
                {
                    "http.request.method": "GET",
                    "http.response.status_code": 200,
                    "http.route": f"/{service}/{{id}}",
                    "url.path": f"/{service}/{trace}",
                    "url.scheme": "http",
                    "server.address": f"{service}.shop.svc.cluster.local",
                    "server.port": 8_080,
                    "network.peer.address": f"10.4.{depth}.{trace}",
                    "user_agent.original": "Apache-HttpClient/5.3 (Java/17.0.15)",
                    "thread.name": f"http-nio-8080-exec-{trace % 10}",
                },
            )
    return bytes(request.SerializeToString())


def framed(message: bytes) -> bytes:
    """The body of a gRPC request: a message without compression."""
    return b"\0" + len(message).to_bytes(4) + message


def _id(trace: int, depth: int) -> bytes:
    return (len(SERVICES) * trace + depth + 1).to_bytes(8)


def _fill(attributes: object, values: dict[str, str | int]) -> None:
    for key, value in values.items():
        attribute = attributes.add(key=key)  # type: ignore[attr-defined]
        if isinstance(value, int):
            attribute.value.int_value = value
        else:
            attribute.value.string_value = value
