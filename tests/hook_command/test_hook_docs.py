# SPDX-License-Identifier: Apache-2.0
"""The commands that docs/hook.md begins with work as they stand."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_first_three_commands(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    block = re.search(r"```sh\n(.*?)```", (ROOT / "docs/hook.md").read_text(), re.DOTALL)
    assert block
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    events = tmp_path / "events.jsonl"
    commands = block[1].replace("8000", str(port)).replace("events.jsonl", str(events))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", commands],
        cwd=ROOT,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    [event] = [json.loads(line) for line in events.read_text().splitlines()]
    assert event["keyword"] == "password"
    assert json.loads(done.stdout.splitlines()[-1]) == event
    assert "calls by function" in done.stderr
