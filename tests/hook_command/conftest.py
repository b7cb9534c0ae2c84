# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.hook_command.service import Nginx, Start


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a command in a process group of its own, which ends with the test."""
    started: list[subprocess.Popen[str]] = []

    def run(*command: str, stdin: int | None = None) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def nginx(tmp_path: Path) -> Nginx:
    if shutil.which("nginx") is None:
        pytest.skip("nginx is not installed")
    return Nginx(tmp_path)
