# SPDX-License-Identifier: Apache-2.0
"""The nginx of the plans, with its page of 700 B, on a free port and one CPU."""

import os
import socket
import subprocess
import time
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from bench.results import ROOT
from bench.turns import on_cpu

from tare.lab.environments.ports import free_port

PLAN = ROOT / "plans" / "hook-nginx.toml"


class Nginx:
    """A running server, inside a `with`; `wrap` is put before its command."""

    def __init__(
        self, folder: Path, wrap: Sequence[str], variables: Mapping[str, str], cpu: int
    ) -> None:
        self.port = free_port("127.0.0.1")
        self.url = f"http://127.0.0.1:{self.port}/"
        for name, text in tomllib.loads(PLAN.read_text())["service"]["files"].items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            filled = text.replace("{address}", "127.0.0.1").replace("{port}", str(self.port))
            file.write_text(filled)
        self.command = [*wrap, "nginx", "-p", str(folder), "-c", "nginx.conf", "-e", "stderr"]
        self.variables, self.cpu = variables, cpu

    def __enter__(self) -> "Nginx":
        path = f"{os.environ['PATH']}:/usr/sbin"
        self.process = subprocess.Popen(
            on_cpu(self.cpu, self.command), env=os.environ | self.variables | {"PATH": path}
        )
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return self
            time.sleep(0.02)
        self.__exit__()
        raise SystemExit(f"{self.command!r} does not listen")

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(10)
