# SPDX-License-Identifier: Apache-2.0
"""services/hello as a user starts it: the built jar on a JDK, over HTTP."""

import http.client
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import SECONDS, wait_for

from tare.plan import load

ROOT = Path(__file__).parents[2]
JAR = ROOT / "services/hello/target/hello.jar"
USUAL_US = 5000
"""What the service waits where a request says nothing."""


def request(
    port: int, method: str, path: str, headers: dict[str, str] | None = None
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def service() -> Iterator[tuple[int, "subprocess.Popen[bytes]"]]:
    java = shutil.which("java")
    if java is None:
        pytest.skip("no java on PATH (package openjdk-17-jdk-headless)")
    if not JAR.exists():
        pytest.skip("services/hello is not built (mvn -q -B package in services/hello)")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [java, "-jar", str(JAR), f"--server.port={port}", "--server.address=127.0.0.1"]
    variables = os.environ | {"BUSY_WAIT_US": str(USUAL_US)}
    process = subprocess.Popen(
        command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
    )
    try:
        wait_until_ready(process, port)
        yield port, process
    finally:
        process.kill()
        process.wait()


def wait_until_ready(process: "subprocess.Popen[bytes]", port: int) -> None:
    def answers() -> bool:
        assert process.poll() is None, f"hello ended with exit code {process.returncode}"
        request(port, "GET", "/")
        return True

    wait_for(answers, "hello")


Service = tuple[int, "subprocess.Popen[bytes]"]


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/"), ("GET", "/a/b?c=d"), ("POST", "/error"), ("PUT", "/x.html")]
)
def test_any_request_is_answered_with_hello_world(service: Service, method: str, path: str) -> None:
    assert request(service[0], method, path) == (200, b"Hello World")


def test_the_header_keeps_the_service_busy_for_as_long_as_it_says(service: Service) -> None:
    began = time.monotonic()
    answer = request(service[0], "GET", "/", {"X-Busy-Wait-Us": "300000"})
    assert answer == (200, b"Hello World")
    assert time.monotonic() - began >= 0.3


def test_the_variable_keeps_it_busy_where_the_request_says_nothing(service: Service) -> None:
    took = []
    for _ in range(20):
        began = time.monotonic()
        request(service[0], "GET", "/")
        took.append(time.monotonic() - began)
    assert min(took) >= USUAL_US / 1e6


@pytest.mark.parametrize("value", ["-1", "1000001", "soon", ""])
def test_any_other_value_is_refused_in_one_line(service: Service, value: str) -> None:
    status, body = request(service[0], "GET", "/", {"X-Busy-Wait-Us": value})
    assert status == 400
    assert body == b"X-Busy-Wait-Us: expected whole microseconds from 0 to 1000000\n"


def test_a_connection_lasts_for_a_whole_run(service: Service) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", service[0], timeout=SECONDS)
    connection.connect()
    first = connection.sock
    for _ in range(250):
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"Hello World"
    assert connection.sock is first
    connection.close()


def test_the_service_ends_when_it_is_told(service: Service) -> None:
    _, process = service
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=SECONDS) == 128 + signal.SIGTERM


def test_the_plan_starts_this_service() -> None:
    plan = load(ROOT / "plans/hook-hello.toml")
    jar = next(word for word in plan.service.command if word.endswith(".jar"))
    assert Path(jar.replace("{plan}", str(plan.folder))).resolve() == JAR
    assert plan.can_interleave
