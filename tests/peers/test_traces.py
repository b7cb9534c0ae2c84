# SPDX-License-Identifier: Apache-2.0
"""Real tracers: OpenTelemetry's Java agent sends its spans, and Zipkin hands its traces out."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request

import pytest
from tests import in_process
from tests.hello.test_hello import JAR, request, wait_until_ready
from tests.peers.programs import answer
from tests.spans.conftest import receiving
from tests.waiting import wait_for

from tare.lab.environments.ports import free_port

pytestmark = pytest.mark.integration
BIN = Path(__file__).parents[2] / "target" / "peers" / "bin"
AGENT, ZIPKIN = BIN / "opentelemetry.jar", BIN / "zipkin.jar"
LOCAL = "127.0.0.1"
REQUESTS = 50


@contextmanager
def java(*words: object, **variables: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A program on a JDK, ended gently, so that it sends what it still has."""
    program = shutil.which("java")
    if program is None:
        pytest.skip("no java on PATH (package openjdk-17-jdk-headless)")
    process = subprocess.Popen(
        [program, *map(str, words)],
        env=os.environ | variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
        process.terminate()
        process.wait()
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_each_request_of_a_java_program_is_a_span(
    tmp_path: Path, protocol: str, compression: str
) -> None:
    for needed in (JAR, AGENT):
        if not needed.exists():
            pytest.skip(f"{needed.name} is not built or installed")
    port = free_port(LOCAL)
    with receiving(tmp_path / "spans.arrow") as receiver:
        address = receiver.grpc if protocol == "grpc" else receiver.http
        server = f"--server.port={port}", f"--server.address={LOCAL}"
        with java(
            f"-javaagent:{AGENT}", "-jar", JAR, *server,
            OTEL_SERVICE_NAME="hello", OTEL_EXPORTER_OTLP_ENDPOINT=f"http://{LOCAL}:{address}",
            OTEL_EXPORTER_OTLP_PROTOCOL=protocol, OTEL_EXPORTER_OTLP_COMPRESSION=compression,
            OTEL_METRICS_EXPORTER="none", OTEL_LOGS_EXPORTER="none", BUSY_WAIT_US="0",
        ) as process:  # fmt: skip
            wait_until_ready(process, port)
            for _ in range(REQUESTS):
                assert request(port, "GET", "/")[0] == 200
        code, out, err = receiver.stop()
        assert code == 0, err
        told = json.loads(out)
        assert told["refused_requests"] == 0
        assert told["rejected"] == {"bad_ids": 0, "bad_times": 0, "too_many_names": 0}
        rows = [row for row in receiver.rows() if row["span"] == "hello: GET /** (server)"]
    assert len(rows) >= REQUESTS
    assert all(row["service"] == "hello" and row["host"] for row in rows)
    assert all(0 < row["duration_ns"] < 10**11 for row in rows)


def test_traces_of_zipkin(tmp_path: Path) -> None:
    if not ZIPKIN.exists():
        pytest.skip("zipkin.jar is not installed")
    port = free_port(LOCAL)
    url = f"http://{LOCAL}:{port}"
    sent = [span for trace in range(1, 41) for span in call(trace)]
    with java("-jar", ZIPKIN, QUERY_PORT=str(port)):
        wait_for(lambda: answer(f"{url}/health"), "Zipkin is not ready")
        kind = {"content-type": "application/json"}
        answer(Request(f"{url}/api/v2/spans", json.dumps(sent).encode(), kind))
        wait_for(lambda: len(traces(url)) == 40, "Zipkin does not have all traces")
        path = tmp_path / "traces.json"
        path.write_text(json.dumps(traces(url)))
    done = in_process.tare("spans", "show", path, "--json")
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    (file,) = json.loads(done.stdout)["files"]
    assert {kind["span"]: kind["spans"] for kind in file["kinds"]} == {
        "shop: buy (server)": 40, "shop: pay (client)": 40, "bank: pay (server)": 40
    }  # fmt: skip
    found = json.loads(in_process.tare("compare", path, path, "--json").stdout)
    (requests,) = found["traces"]
    assert requests["root"] == "shop: buy (server)"
    own = {part["span"]: part["critical_ns"]["baseline"] for part in requests["parts"]}
    assert own == {
        "shop: buy (server)": 6e6, "shop: pay (client)": 1e6, "bank: pay (server)": 3e6
    }  # fmt: skip


def call(trace: int) -> list[dict[str, Any]]:
    """A purchase and the payment in it, of which both sides share an id."""
    start = 1_700_000_000_000_000 + 100_000 * trace

    inside = {"parentId": f"{16 * trace + 1:016x}"}
    return [
        {
            "traceId": f"{trace:016x}", "id": f"{16 * trace + own:016x}", "name": name,
            "kind": kind, "timestamp": start + at, "duration": took,
            "localEndpoint": {"serviceName": service},
        } | more
        for own, name, service, kind, at, took, more in (
            (1, "buy", "shop", "SERVER", 0, 10_000, {}),
            (2, "pay", "shop", "CLIENT", 2_000, 4_000, inside),
            (2, "pay", "bank", "SERVER", 2_500, 3_000, {"shared": True, **inside}),
        )
    ]  # fmt: skip


def traces(url: str) -> list[Any]:
    """All traces of the days around those of `call`."""
    day = 86_400_000
    query = f"endTs={1_700_000_000_000 + day}&lookback={2 * day}&limit=100"
    found: list[Any] = json.loads(answer(f"{url}/api/v2/traces?{query}"))
    return found
