# SPDX-License-Identifier: Apache-2.0
"""HTTP/2: users are streams on few connections, and their recording is the same."""

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.load import tls
from tests.load.conftest import TARE_LOAD, Measure, Nginx, most_kib, rows, two_servers
from tests.waiting import SECONDS

SERVER = Path(__file__).parent / "h2_server.js"


@pytest.fixture
def nginx2(pair: tuple[Path, Path], tmp_path: Path) -> Iterator[Nginx]:
    """HTTP/2 in clear text on the first port, under TLS on the second."""
    logged = "$server_protocol $connection $host"
    how = ("http2", "ssl http2")
    yield from two_servers(tmp_path / "nginx", how, tls.of_nginx(pair), logged)


@contextmanager
def node(**settings: Any) -> Iterator[str]:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    command = ["node", str(SERVER), json.dumps(settings)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def _url(nginx: Nginx, server: int) -> str:
    return f"{('http', 'https')[server]}://127.0.0.1:{nginx.ports[server]}/"


@pytest.mark.parametrize("server", [0, 1], ids=["clear", "tls"])
@pytest.mark.parametrize(
    ("load", "connections"),
    [
        (["--requests", "300"], 1),
        (["--requests", "500", "--users", "20"], 1),
        (["--requests", "500", "--users", "20", "--connections", "3"], 3),
        (["--requests", "500", "--users", "20", "--threads", "2"], 2),
        (["--requests", "2000", "--users", "300"], 1),
        (["--duration", "300ms", "--mode", "open", "--rate", "1000"], 1),
        (["--duration", "300ms", "--mode", "constant", "--rate", "500", "--users", "4"], 1),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_every_request_that_nginx_logged_is_recorded(
    nginx2: Nginx, measure: Measure, server: int, load: list[str], connections: int
) -> None:
    trust = ["--insecure"] if server else []
    measured = measure(_url(nginx2, server), "--http", "2", *trust, *load)

    assert nginx2.logged()[server] == len(measured.samples) > 0
    assert {(row["ok"], row["status"]) for row in measured.samples} == {(True, 200)}
    assert all(row["bytes"] == len("hello\n") for row in measured.samples)
    assert all(row["intended_ns"] <= row["start_ns"] for row in measured.samples)
    lines = (nginx2.folder / ("one.log", "two.log")[server]).read_text().splitlines()
    words = [line.split(" ") for line in lines]
    assert {(version, host) for version, _, host in words} == {("HTTP/2.0", "127.0.0.1")}
    assert len({connection for _, connection, _ in words}) == connections


@pytest.mark.parametrize("server", [0, 1], ids=["clear", "tls"])
def test_large_bodies_go_both_ways(
    nginx2: Nginx, pair: tuple[Path, Path], measure: Measure, tmp_path: Path, server: int
) -> None:
    body = tmp_path / "body"
    body.write_bytes(tls.BODY)
    url = _url(nginx2, server) + "large"
    common = ["--http", "2", "--requests", "20", "--users", "3"]
    common += ["--ca", str(pair[0])] if server else []
    sent = measure(url, "--method", "PUT", "--body", str(body), *common)
    assert sent.summary["targets"][0]["errors_by_kind"] == {}
    assert (nginx2.folder / "large").read_bytes() == tls.BODY

    got = measure(url, "--expect-body", str(body), *common)
    assert got.summary["targets"][0]["errors_by_kind"] == {}
    assert all(row["bytes"] == len(tls.BODY) for row in got.samples)


@pytest.mark.parametrize("server", [0, 1], ids=["clear", "tls"])
def test_an_answer_without_end_fills_no_memory_and_is_given_up_in_time(
    nginx2: Nginx, tmp_path: Path, server: int
) -> None:
    with (nginx2.folder / "large").open("wb") as large:
        # All holes: it comes as fast as can be.
        large.truncate(8 << 30)
    out = tmp_path / "samples.arrow"
    command = [TARE_LOAD, "http", _url(nginx2, server) + "large", "--http", "2", "--warmup", "0s"]
    command += ["--requests", "1", "--timeout", "500ms", "--out", str(out)]
    command += ["--insecure"] if server else []
    lasted = []
    for _ in range(3):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, text=True) as process:
            assert most_kib(process) < 32 * 1024
        assert process.returncode == 1  # no request succeeded
        (row,) = rows(out)
        assert row["error"] == "timeout"
        lasted.append(row["duration_ns"])
    # Not after the 5 s that it has by default, however late a busy machine wakes it.
    assert 0.5e9 <= min(lasted) < 5e9


@pytest.mark.parametrize("users", ["1", "5"])
@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("/hello", 200, None),
        ("/trailer", 201, None),
        ("/missing", 404, "status"),
        ("/reset", 200, "reset"),
        ("/refuse", 0, "reset"),
        ("/wait", 200, "timeout"),
    ],
)
def test_what_becomes_of_a_stream_is_its_row(
    measure: Measure, users: str, path: str, status: int, error: str | None
) -> None:
    # Only where one is awaited: a busy machine may take long for each answer.
    count, patience = (2, "2s") if error == "timeout" else (10, "60s")
    load = ["--http", "2", "--requests", str(count), "--users", users, "--timeout", patience]
    with node() as url:
        measured = measure(url + path, *load)
    assert len(measured.samples) == count
    assert {(row["status"], row["error"]) for row in measured.samples} == {(status, error)}


@pytest.mark.parametrize("users", ["1", "5"])
def test_a_connection_that_is_cut_is_an_error_of_each_request_on_it(
    measure: Measure, users: str
) -> None:
    with node() as url:
        measured = measure(url + "/cut", "--http", "2", "--requests", "10", "--users", users)
    assert len(measured.samples) == 10
    assert {row["error"] for row in measured.samples} <= {"closed", "reset"}


def test_requests_that_the_announced_end_leaves_out_are_errors(measure: Measure) -> None:
    with node() as url:
        measured = measure(url + "/last", "--http", "2", "--requests", "20", "--users", "5")
    errors = Counter(row["error"] for row in measured.samples)
    assert sum(errors.values()) == 20
    assert set(errors) == {None, "closed"}


def test_an_announced_end_leads_to_a_new_connection(measure: Measure, tmp_path: Path) -> None:
    with node() as url:
        measured = measure(url + "/last", "--http", "2", "--requests", "10")
        assert measured.summary["targets"][0]["errors"] == 0
        sessions = tmp_path / "sessions"
        # One for each request, and two of each run: one only looks whether anybody is there.
        sessions.write_text("13")
        counted = ["--http", "2", "--requests", "1", "--expect-body", str(sessions)]
        asked = measure(url + "/sessions", *counted)
        assert asked.summary["targets"][0]["errors_by_kind"] == {}


def test_users_above_the_streams_that_a_server_allows_wait_for_one(measure: Measure) -> None:
    load = ["--http", "2", "--users", "8", "--requests", "40"]
    with node(maxConcurrentStreams=2) as url:
        measured = measure(url + "/slow", *load)
    assert Counter(row["error"] for row in measured.samples) == {None: 40}
    spans = [(row["start_ns"], row["start_ns"] + row["duration_ns"]) for row in measured.samples]
    moments = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    under_way = most = 0
    for _, step in moments:
        under_way += step
        most = max(most, under_way)
    assert most <= 2
    # Waiting for a stream is no part of a request's time.
    assert min(row["duration_ns"] for row in measured.samples) < 0.1e9


def test_users_who_wait_for_a_stream_of_a_mute_server_time_out_as_those_who_have_one(
    measure: Measure,
) -> None:
    load = ["--http", "2", "--users", "5", "--requests", "5", "--timeout", "300ms"]
    with node(maxConcurrentStreams=1) as url:
        measured = measure(url + "/mute", *load)
    assert Counter(row["error"] for row in measured.samples) == {"timeout": 5}


@pytest.mark.parametrize(("path", "errors"), [("/last", {None}), ("/cut", {"closed", "reset"})])
def test_users_who_wait_for_a_stream_have_one_when_their_connection_has_ended(
    measure: Measure, path: str, errors: set[str | None]
) -> None:
    load = ["--http", "2", "--users", "5", "--requests", "5"]
    with node(maxConcurrentStreams=1) as url:
        measured = measure(url + path, *load)
    # Each of them has been sent, and has at least the head of its answer.
    assert [row["status"] for row in measured.samples] == [200] * 5
    assert {row["error"] for row in measured.samples} <= errors


def test_a_server_of_http_1_is_told_apart(
    nginx: Nginx, pair: tuple[Path, Path], measure: Measure
) -> None:
    def answer(stream: Any) -> None:
        for _ in tls.requests(stream):
            stream.sendall(tls.ANSWER)

    with tls.server(pair, answer) as url:
        command = [TARE_LOAD, "http", url, "--insecure", "--http", "2"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 1
    assert "does not offer HTTP/2" in done.stderr
    measured = measure(nginx.url(), "--http", "2", "--requests", "5", "--timeout", "500ms")
    assert {row["ok"] for row in measured.samples} == {False}
