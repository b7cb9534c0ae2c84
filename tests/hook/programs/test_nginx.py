# SPDX-License-Identifier: Apache-2.0
"""nginx: a master and workers of another user, pages and errors."""

import socket
from pathlib import Path

from tests.hook.programs.ways import Wrap, both, free_port
from tests.hook.programs.web import PAGE, web


def get(port: int, path: str) -> tuple[bytes, bytes]:
    """Status line and body."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(f"GET /{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while part := connection.recv(65536):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.partition(b"\r\n")[0], body


def test_nginx(readable: Path) -> None:
    def session(wrap: Wrap) -> list[tuple[bytes, bytes]]:
        port = free_port()
        with web(readable, port, wrap):
            return [get(port, path) for path in ("page", "absent", "page")]

    assert both(session, readable)[0] == (b"HTTP/1.1 200 OK", PAGE.encode())
