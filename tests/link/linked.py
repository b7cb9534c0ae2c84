# SPDX-License-Identifier: Apache-2.0
"""Programs under tare-link, and what it counted."""

import json
import subprocess
from dataclasses import dataclass

from tests.waiting import SECONDS

from tare.native import native

LINK = native("bin", "tare-link")
PAIR = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
def linked():
    near = socket.create_connection(listener.getsockname())
    far, _ = listener.accept()
    for _ in range(4):
        near.sendall(b"question")
        assert far.recv(8) == b"question"
        far.sendall(b"answer")
        assert near.recv(6) == b"answer"
    return near, far
"""
"""For programs in Python: `linked()` makes a connection that is linked."""


@dataclass(frozen=True)
class Linked:
    """A program that has ended."""

    code: int
    output: str
    errors: str
    counts: dict[str, int]

    @property
    def share(self) -> float:
        """What part of the bytes that were sent went through rings."""
        ring, tcp = self.counts["ring_bytes_sent"], self.counts["tcp_bytes_sent"]
        return ring / max(1, ring + tcp)


def run(*command: str, eager: bool = True) -> Linked:
    """Runs a program to its end."""
    return ended(start(*command, eager=eager))


def start(*command: str, eager: bool = True) -> subprocess.Popen[str]:
    options = ["--eager"] if eager else []
    return subprocess.Popen(
        [LINK, *options, "--json", "--", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> Linked:
    output, errors = process.communicate(timeout=SECONDS)
    *lines, last = errors.splitlines()
    return Linked(process.returncode, output, "\n".join(lines), json.loads(last))
