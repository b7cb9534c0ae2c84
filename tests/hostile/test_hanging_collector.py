# SPDX-License-Identifier: Apache-2.0
"""A program whose collector hangs goes on, and loses no event without counting it."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.hostile.conftest import Compile
from tests.waiting import wait_for

from tare.native import native


@contextmanager
def collecting(socket: Path) -> Iterator["subprocess.Popen[str]"]:
    command: list[str | Path] = [native("bin", "tare-log"), "collect", "--json", "--socket", socket]
    with subprocess.Popen(
        [*command, "--out", socket.with_suffix(".log")], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            wait_for(socket.exists, "the socket")
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("what", ["jump", "priorities"])
def test_first_calls_do_not_hang(what: str, logging_program: Compile, tmp_path: Path) -> None:
    program = logging_program("hanging")
    socket = tmp_path / "socket"
    with collecting(socket) as collector:
        collector.send_signal(signal.SIGSTOP)
        environment = os.environ | {"TARE_LOG": str(socket)}
        done = subprocess.run([program, what], env=environment, timeout=60, check=False)
        if done.returncode == 4:
            pytest.skip("this user may not set priorities")
        assert done.returncode == 0
        collector.send_signal(signal.SIGCONT)
        collector.send_signal(signal.SIGINT)
        _, errors = collector.communicate(timeout=60)
    totals = json.loads(errors.splitlines()[-1])
    assert totals["events"] + totals["lost"] + totals["unserved"] == 2
