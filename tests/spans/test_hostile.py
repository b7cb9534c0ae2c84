# SPDX-License-Identifier: Apache-2.0
"""Hostile senders are refused with a status, and others lose nothing."""

import gzip
import json
import socket
import time
from pathlib import Path

import pytest
from tests.spans.conftest import Receiver, framed, protobuf, request, span
from tests.spans.test_receive import PROTOBUF, grpc
from tests.waiting import SECONDS, wait_for

MEBIBYTE = 1 << 20


@pytest.mark.parametrize(
    ("body", "kind", "status", "why"),
    [
        (b"garbage", PROTOBUF, 400, b"cannot be read"),
        (b"garbage", "application/json", 400, b"cannot be read"),
        (b"[1]", "application/json", 400, b"cannot be read"),
        (b"{}", "text/plain", 415, b"application/x-protobuf"),
        (b"\0" * (16 * MEBIBYTE + 1), PROTOBUF, 413, b"16 MiB"),
        (b" " * (4 * MEBIBYTE + 1), "application/json", 413, b"4 MiB as JSON"),
        (b'{"resourceSpans":' * 200_000, "application/json", 400, b"cannot be read"),
    ],
    ids=["no protobuf", "no JSON", "a list", "a type", "large", "large JSON", "deep"],
)
def test_a_bad_request_is_refused(
    receiver: Receiver, body: bytes, kind: str, status: int, why: bytes
) -> None:
    found, answer = receiver.post(body, kind)
    assert found == status
    assert why in answer
    receiver.send(span())
    code, out, _ = receiver.stop()
    assert code == 0
    assert json.loads(out)["refused_requests"] == 1
    assert len(receiver.rows()) == 1


def test_other_paths_methods_and_encodings(receiver: Receiver) -> None:
    body = json.dumps(request(span())).encode()
    assert receiver.post(body, path="/v1/metrics")[0] == 404
    assert receiver.post(body, content_encoding="br")[0] == 415
    assert receiver.post(b"x", content_encoding="gzip")[0] == 400


@pytest.mark.exhaustive
def test_a_bomb_of_gzip(receiver: Receiver) -> None:
    bomb = gzip.compress(gzip.compress(b"\0" * (1 << 30)))
    assert len(bomb) < 100_000
    once = gzip.decompress(bomb)
    before = peak(receiver)
    for _ in range(10):
        assert receiver.post(once, PROTOBUF, content_encoding="gzip")[0] == 413
    assert peak(receiver) - before < 64 << 10


def peak(receiver: Receiver) -> int:
    """The most memory that the receiver ever had, in KiB."""
    status = Path(f"/proc/{receiver.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def test_bad_requests_over_grpc(receiver: Receiver, tmp_path: Path) -> None:
    def status(body: bytes, encoding: str = "", **more: str) -> str:
        return grpc(receiver, body, tmp_path, encoding, **more)[0]

    assert status(b"") == "3"
    assert status(b"\0\0\0\0\5a") == "3"
    assert status(b"\7" + framed(protobuf(1))[1:]) == "3"
    assert status(framed(b"garbage")) == "3"
    assert status(framed(protobuf(1), packed=True)) == "12", "it does not say how it is packed"
    assert status(framed(protobuf(1), packed=True), "snappy") == "12"
    assert status(framed(b"\0" * (16 * MEBIBYTE))) == "8"
    assert status(framed(protobuf(1)), path="/other.Service/Export") == "12"
    assert status(framed(protobuf(1))) == "0"


def test_many_names_are_rejected_and_known_names_are_not(receiver: Receiver) -> None:
    """So that memory, and the dictionary in the file, stay small."""
    rejected = 0
    for first in range(0, 20_000, 1_000):
        names = [span(1, name=f"GET /{number}") for number in range(first, first + 1_000)]
        answer = receiver.send(*names)
        rejected += int(answer.get("partialSuccess", {}).get("rejectedSpans", 0))
    assert 10_000 <= rejected <= 10_010
    assert receiver.send(span(1, name="GET /0")) == {}
    code, out, _ = receiver.stop()
    assert code == 0
    assert json.loads(out)["rejected"]["too_many_names"] == rejected
    assert len(receiver.rows()) == 20_001 - rejected


def test_slow_senders_hold_up_nobody(receiver: Receiver) -> None:
    """Each is answered after 10 s, and others meanwhile."""
    slow = []
    for _ in range(200):
        sender = socket.create_connection(("127.0.0.1", receiver.http), timeout=SECONDS)
        sender.sendall(
            b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            b"content-length: 100\r\n\r\n{"
        )
        slow.append(sender)
    receiver.send(span())
    begin = time.monotonic()
    answers = [sender.recv(100) for sender in slow]
    assert all(answer.startswith(b"HTTP/1.1 408 ") for answer in answers)
    assert time.monotonic() - begin < SECONDS
    wait_for(lambda: len(receiver.rows()) == 1, "the span was not written")


def test_a_client_that_is_gone_stops_nothing(receiver: Receiver) -> None:
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", receiver.http)) as client:
            client.sendall(b"POST /v1/traces HTTP/1.1\r\ncontent-length: 100\r\n\r\n{")
        with socket.create_connection(("127.0.0.1", receiver.grpc)) as client:
            client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff")
    receiver.send(span())
    code, _, _ = receiver.stop()
    assert code == 0
    assert len(receiver.rows()) == 1
