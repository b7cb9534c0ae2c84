# SPDX-License-Identifier: Apache-2.0
"""Represents a program of a virtual machine on this host: passes signals on, and ends as it ends.

It runs as a script, with the standard library alone:
`client.py TOKEN_FILE ADDRESS REQUEST_FILE PID`, the last the PID of the guest.
"""

import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

PORT = 1
CONNECT_S = 60.0
"""A guest that is computed on a busy machine takes seconds to accept a connection."""
OWN = (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGPIPE)
"""Signals that cannot be passed on, or that are about this process."""


def asked(
    token: str, address: str, request: dict[str, Any], limit_s: float = CONNECT_S
) -> socket.socket:
    """A connection on which the request was sent. Raises OSError if the guest does not answer."""
    connection = socket.create_connection((address, PORT), limit_s)
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(f"{token}\n{json.dumps(request)}\n".encode())
    return connection


def answer(connection: socket.socket, guest: int, limit_s: float | None = None) -> dict[str, Any]:
    """The answer. Raises OSError if the guest (a PID) ends before it, or after `limit_s`."""
    text = b""
    # A guest that is killed ends no connection.
    ended = os.pidfd_open(guest)
    either: list[Any] = [connection, ended]
    try:
        while not text.endswith(b"\n"):
            readable, _, _ = select.select(either, [], [], limit_s)
            if not readable:
                raise TimeoutError(f"no answer in {limit_s:g} s")
            part = connection.recv(65536) if connection in readable else b""
            if not part:
                raise ConnectionResetError("the virtual machine has ended")
            text += part
    finally:
        os.close(ended)
    return dict(json.loads(text))


def main(token_file: str, address: str, request_file: str, guest: str) -> None:
    """Ends as the program does: with its exit code, or by its signal."""
    token = Path(token_file).read_text(encoding="ascii")
    request = json.loads(Path(request_file).read_text(encoding="utf-8"))
    early: list[int] = []
    for signum in signal.valid_signals() - {*OWN}:
        with suppress(OSError, ValueError):
            signal.signal(signum, lambda number, _: early.append(number))
    connection = asked(token, address, request)

    def forward(number: int, _frame: object) -> None:
        with suppress(OSError):
            connection.sendall(b"%d\n" % number)

    for signum in signal.valid_signals() - {*OWN}:
        with suppress(OSError, ValueError):
            signal.signal(signum, forward)
    for number in early:
        forward(number, None)
    try:
        found = answer(connection, int(guest))
    except OSError as error:
        print(error, file=sys.stderr)
        found = {"code": -signal.SIGKILL}
    if "error" in found:
        print(found["error"], file=sys.stderr)
        sys.exit(127)
    code = found["code"]
    if code >= 0:
        sys.exit(code)
    with suppress(OSError, ValueError):
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)


if __name__ == "__main__":
    main(*sys.argv[1:])
