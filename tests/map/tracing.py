# SPDX-License-Identifier: Apache-2.0
"""A tracer that runs while a test does something."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

from tests.map.hosts import Host
from tests.waiting import SECONDS

from tare.native import native

Edge = dict[str, Any]


class Tracing:
    """tare-map between `start` and `stop`."""

    def __init__(self, *options: str, json: bool = True) -> None:
        command = [native("bin", "tare-map"), *["--json"][: int(json)], *options]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr
        line = self.process.stderr.readline()
        assert "tracing until Ctrl-C" in line, line + self.process.stderr.read()

    def stop(self) -> dict[str, Any]:
        """All that it found."""
        found: dict[str, Any] = json.loads(self.stop_and_read())
        return found

    def stop_and_read(self) -> str:
        """All that it prints."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=SECONDS)
        assert self.process.returncode == 0, err
        return out

    def __enter__(self) -> "Tracing":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def of_port(found: dict[str, Any], port: int, role: str | None = None) -> list[Edge]:
    """The edges to a service of the test: in its hosts, or in this process's namespace without any.

    The kernel may give the same port to another program of the machine, in its own namespace.
    """
    namespaces = Host.namespaces or {Path("/proc/self/ns/net").stat().st_ino}
    edges = [edge for edge in found["edges"] if edge["port"] == port]
    edges = [edge for edge in edges if edge["netns"] in namespaces]
    return [edge for edge in edges if role is None or edge["role"] == role]
