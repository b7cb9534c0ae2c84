# SPDX-License-Identifier: Apache-2.0
"""A real nginx to be run under tare-hook, and how to talk to it."""

import json
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.nginx import configuration
from tests.waiting import SECONDS, wait_for

from tare.lab.environments.ports import free_port
from tare.native import native

HOOK = native("bin", "tare-hook")
Start = Callable[..., subprocess.Popen[str]]
MANY = b"needle" * 1000


class Nginx:
    """An nginx on a free port, that a test starts under tare-hook."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port("127.0.0.1")
        server = f'listen 127.0.0.1:{self.port}; location / {{ return 200 "hello\\n"; }}'
        (folder / "nginx.conf").write_text(configuration(f"server {{ {server} }}"))
        self.command = ["nginx", "-p", str(folder), "-c", "nginx.conf", "-e", "stderr"]

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS)

    def wait(self) -> None:
        def answers() -> bytes:
            with self.connect() as connection:
                return exchange(connection, request())

        wait_for(answers, "nginx")


class Hooked:
    """An nginx under the hook, with the events that it recorded."""

    def __init__(self, nginx: Nginx, start: Start, text: str) -> None:
        self.nginx = nginx
        self.file = nginx.folder / "events.jsonl"
        self.rules = nginx.folder / "rules.toml"
        self.rules.write_text(text)
        options = ["--rules", str(self.rules), "--events", str(self.file), "--json"]
        self.process = start(HOOK, *options, "--", *nginx.command)
        nginx.wait()

    def events(self, count: int) -> list[dict[str, Any]]:
        """Exactly `count` events, once there are as many."""
        wait_for(lambda: len(self.lines()) >= count)
        events = self.lines()
        assert len(events) == count
        return events

    def stop(self) -> dict[str, Any]:
        """Ends the server; returns what the hook says at its end."""
        self.process.terminate()
        _, err = self.process.communicate(timeout=SECONDS)
        assert self.process.returncode == 0
        stats: dict[str, Any] = json.loads(err.splitlines()[-1])
        return stats

    def lines(self) -> list[dict[str, Any]]:
        """The events so far; a line that is being written is none yet."""
        whole = self.file.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]


def request(extra: bytes = b"") -> bytes:
    """A GET with `extra` as the value of a header."""
    return b"GET / HTTP/1.1\r\nHost: here\r\nX-Extra: " + extra + b"\r\n\r\n"


def exchange(connection: socket.socket, *parts: bytes) -> bytes:
    """Sends the parts of one request, each to be read alone, and returns the answer."""
    for number, part in enumerate(parts):
        if number:
            time.sleep(0.05)
        connection.sendall(part)
    answer = b""
    while not answer.endswith(b"hello\n"):
        received = connection.recv(4096)
        if not received:
            raise ConnectionResetError("the server closed the connection")
        answer += received
    return answer


def rules(*keywords: str, **also: str) -> str:
    """A rules file of one rule."""
    lines = [f"{key} = {value!r}" for key, value in also.items()]
    return "\n".join(["[[rule]]", f"keywords = {list(keywords)!r}", *lines, ""])


def child_of(process: subprocess.Popen[str]) -> int:
    """The number of the program that a tare-hook has started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    wait_for(lambda: children.read_text() != "")
    return int(children.read_text())
