# SPDX-License-Identifier: Apache-2.0
"""TLS: the same recording, with and without the handshake, and whom it trusts."""

import socket
import ssl
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from tests.load import tls
from tests.load.conftest import TARE_LOAD, Measure, Nginx, two_servers
from tests.waiting import SECONDS


@pytest.fixture
def secure(pair: tuple[Path, Path], tmp_path: Path) -> Iterator[Nginx]:
    """TLS 1.3 on the first port, 1.2 on the second; logs tell of sessions and names."""
    how = ("ssl; ssl_protocols TLSv1.3", "ssl; ssl_protocols TLSv1.2")
    logged = "$ssl_session_reused $ssl_server_name"
    yield from two_servers(tmp_path / "nginx", how, tls.of_nginx(pair), logged)


def _url(nginx: Nginx, server: int = 0, host: str = "127.0.0.1", path: str = "") -> str:
    return f"https://{host}:{nginx.ports[server]}/{path}"


def _words(nginx: Nginx, log: str) -> list[list[str]]:
    return [line.split(" ") for line in (nginx.folder / log).read_text().splitlines()]


@pytest.mark.parametrize("server", [0, 1], ids=["1.3", "1.2"])
@pytest.mark.parametrize(
    "load",
    [
        ["--requests", "300"],
        ["--requests", "300", "--users", "5", "--threads", "2"],
        ["--requests", "40", "--connection", "per-request"],
        ["--requests", "40", "--connection", "per-request", "--users", "3"],
        ["--duration", "300ms", "--mode", "open", "--rate", "500"],
    ],
    ids=" ".join,
)
def test_every_request_that_nginx_logged_is_recorded(
    secure: Nginx, pair: tuple[Path, Path], measure: Measure, server: int, load: list[str]
) -> None:
    measured = measure(_url(secure, server), "--ca", str(pair[0]), *load)

    assert secure.logged()[server] == len(measured.samples) > 0
    assert {(row["ok"], row["status"]) for row in measured.samples} == {(True, 200)}


@pytest.mark.parametrize("users", ["1", "3", "50"])
@pytest.mark.parametrize("server", [0, 1], ids=["1.3", "1.2"])
def test_sessions_are_taken_up_again_and_the_name_is_sent(
    secure: Nginx, pair: tuple[Path, Path], measure: Measure, server: int, users: str
) -> None:
    load = ["--connection", "per-request", "--requests", "400", "--users", users]
    measured = measure(_url(secure, server, "localhost"), "--ca", str(pair[0]), *load)

    assert measured.summary["targets"][0]["errors"] == 0
    secure.logged()
    logged = _words(secure, ("one.log", "two.log")[server])
    assert {name for _, name in logged} == {"localhost"}
    reused = Counter(reused for reused, _ in logged)
    # The first of each user may find none that it could take up.
    assert reused["r"] >= 400 - int(users)


@pytest.mark.parametrize("users", ["1", "3"])
def test_large_bodies_go_both_ways(
    secure: Nginx, pair: tuple[Path, Path], measure: Measure, tmp_path: Path, users: str
) -> None:
    body = tmp_path / "body"
    body.write_bytes(tls.BODY)
    url = _url(secure, path="large")
    common = ["--ca", str(pair[0]), "--requests", "20", "--users", users]
    sent = measure(url, "--method", "PUT", "--body", str(body), *common)
    assert sent.summary["targets"][0]["errors_by_kind"] == {}
    assert (secure.folder / "large").read_bytes() == tls.BODY

    got = measure(url, "--expect-body", str(body), *common)
    assert got.summary["targets"][0]["errors_by_kind"] == {}
    assert all(row["bytes"] > len(tls.BODY) for row in got.samples)


@pytest.mark.parametrize("users", ["1", "3"])
def test_the_handshake_is_time_of_a_request_with_a_connection_of_its_own(
    pair: tuple[Path, Path], measure: Measure, users: str
) -> None:
    with tls.server(pair, _answer, lambda: time.sleep(0.1)) as url:
        common = [url, "--ca", str(pair[0]), "--requests", "6", "--users", users]
        kept = measure(*common)
        # Some may wait for a processor, but not all of them for as long as a handshake.
        assert min(row["duration_ns"] for row in kept.samples) < 0.1e9
        own = measure(*common, "--connection", "per-request")
        assert min(row["duration_ns"] for row in own.samples) >= 0.1e9
        # Made in the open loop's window, the connection is part of response time alone.
        load = ["--mode", "open", "--rate", "20", "--duration", "300ms", "--users", users]
        opened = measure(url, "--ca", str(pair[0]), *load)
        assert not any(row["error"] for row in opened.samples)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "UnknownIssuer"),
        (["--ca", "{other}"], "UnknownIssuer"),
    ],
)
def test_a_server_that_nobody_vouches_for_is_refused(
    secure: Nginx, tmp_path: Path, arguments: list[str], says: str
) -> None:
    other, _ = tls.certificate(tmp_path / "other")
    filled = [word.format(other=other) for word in arguments]
    done = _tare_load(_url(secure), *filled)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert says in done.stderr
    assert "--insecure" in done.stderr


def test_what_is_advised_is_not_what_was_given(tmp_path: Path) -> None:
    pair = tls.certificate(tmp_path / "authority", authority=True)
    with tls.server(pair, _answer) as url:
        done = _tare_load(url, "--ca", str(pair[0]))
    assert done.returncode == 1
    assert "CaUsedAsEndEntity" in done.stderr
    assert "--insecure" in done.stderr
    assert "--ca" not in done.stderr


def test_any_certificate_is_taken_even_one_that_cannot_be_read(
    tmp_path: Path, measure: Measure
) -> None:
    pair = tls.certificate_of_version_1(tmp_path / "old")
    how = ("ssl; ssl_protocols TLSv1.3", "ssl; ssl_protocols TLSv1.2")
    with contextmanager(two_servers)(tmp_path / "nginx", how, tls.of_nginx(pair)) as nginx:
        for server in range(2):
            measured = measure(_url(nginx, server), "--insecure", "--requests", "3")
            assert [row["ok"] for row in measured.samples] == [True] * 3
        done = _tare_load(_url(nginx))
    assert done.returncode == 1
    assert "--insecure accepts any certificate" in done.stderr


def test_a_certificate_for_another_name_is_refused_unless_any_is_taken(
    tmp_path: Path, measure: Measure
) -> None:
    pair = tls.certificate(tmp_path / "elsewhere", "DNS:elsewhere")
    with tls.server(pair, _answer) as url:
        done = _tare_load(url, "--ca", str(pair[0]))
        assert done.returncode == 1
        assert "elsewhere" in done.stderr
        assert len(done.stderr.splitlines()) == 1
        measured = measure(url, "--insecure", "--requests", "3")
        assert [row["ok"] for row in measured.samples] == [True] * 3


def test_a_server_without_tls_is_told_apart(nginx: Nginx) -> None:
    done = _tare_load(_url(nginx), "--insecure")
    assert done.returncode == 1
    assert "give http:// instead" in done.stderr


@pytest.mark.parametrize("users", ["1", "3"])
@pytest.mark.parametrize(
    ("announces", "error"), [(True, None), (False, "closed")], ids=["announced", "cut"]
)
def test_an_answer_that_ends_with_the_connection_has_to_have_its_end_announced(
    pair: tuple[Path, Path], measure: Measure, users: str, announces: bool, error: str | None
) -> None:
    def serve(stream: ssl.SSLSocket) -> None:
        for _ in tls.requests(stream):
            stream.sendall(b"HTTP/1.1 200 OK\r\n\r\nhello")
            if announces:
                stream.unwrap()
            return

    with tls.server(pair, serve) as url:
        measured = measure(url, "--insecure", "--requests", "6", "--users", users)
    assert {row["error"] for row in measured.samples} == {error}


@pytest.mark.parametrize("users", ["1", "3"])
@pytest.mark.parametrize(
    ("rubbish", "error"), [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "tls"), (b"", "closed")]
)
def test_what_is_not_of_the_session_is_an_error(
    pair: tuple[Path, Path], measure: Measure, users: str, rubbish: bytes, error: str
) -> None:
    def serve(stream: ssl.SSLSocket) -> None:
        for _ in tls.requests(stream):
            with socket.socket(fileno=stream.detach()) as plain:
                plain.sendall(rubbish)
            return

    with tls.server(pair, serve) as url:
        measured = measure(url, "--insecure", "--requests", "6", "--users", users)
    assert {row["error"] for row in measured.samples} == {error}


@pytest.mark.parametrize("users", ["1", "3"])
def test_a_handshake_that_fails_later_is_an_error_of_its_request(
    pair: tuple[Path, Path], measure: Measure, users: str
) -> None:
    seen = iter(range(1000))

    def refuse_most() -> None:
        # The first connection looks whether the service is there.
        if next(seen):
            raise OSError

    with tls.server(pair, _answer, refuse_most) as url:
        measured = measure(url, "--insecure", "--requests", "6", "--users", users)
    assert len(measured.samples) == 6
    assert {row["error"] for row in measured.samples} <= {"tls", "connect"}


def test_connections_are_made_ahead_for_one_time_out_at_most(
    pair: tuple[Path, Path], measure: Measure
) -> None:
    came: list[float] = []

    def be_slow() -> None:
        came.append(time.monotonic())
        time.sleep(0.3)

    with tls.server(pair, _answer, be_slow) as url:
        load = ["--users", "20", "--requests", "20", "--timeout", "3s"]
        measure(url, "--insecure", *load)
    # One after another they would be 0.3 s apart; those that are made when needed come together.
    assert min(b - a for a, b in pairwise(sorted(came))) < 0.3


@pytest.mark.parametrize("users", ["1", "3"])
def test_a_handshake_without_end_is_given_up(
    silent: str, pair: tuple[Path, Path], measure: Measure, users: str
) -> None:
    seen = iter(range(1000))
    over = threading.Event()

    def stall_after_the_first() -> None:
        if next(seen):
            over.wait()

    with tls.server(pair, _answer, stall_after_the_first) as url:
        load = ["--timeout", "1s", "--requests", "3", "--users", users]
        measured = measure(url, "--insecure", "--connection", "per-request", *load)
        over.set()
    assert {row["error"] for row in measured.samples} == {"connect"}
    assert all(row["duration_ns"] >= 1e9 for row in measured.samples)
    done = _tare_load(silent.replace("http:", "https:"), "--insecure", "--timeout", "200ms")
    assert done.returncode == 1
    assert "no TLS handshake within 200ms" in done.stderr


def _answer(stream: ssl.SSLSocket) -> None:
    for _ in tls.requests(stream):
        stream.sendall(tls.ANSWER)


def _tare_load(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [TARE_LOAD, "http", "--warmup", "0s", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
