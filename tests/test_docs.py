# SPDX-License-Identifier: Apache-2.0
"""The commands that docs/load.md and docs/compare.md begin with work as they stand."""

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tare.native import native

DOCS = Path(__file__).parents[1] / "docs"


def first_block(page: str) -> str:
    """The page's first commands, of which there are three."""
    text = (DOCS / page).read_text()
    block = re.search(r"\A(?:[<#][^\n]*\n|\n)*```sh\n(.*?)```", text, re.DOTALL)
    assert block, f"{page} does not begin with commands"
    assert block[1].count("\n") == 3
    return block[1]


def run(commands: str, port: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs them as one script on a free port, for moments; what they leave running ends too."""
    if not Path(native("bin", "tare-load")).exists():
        pytest.skip("tare-load is not built")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        here = str(free.getsockname()[1])
    assert port in commands
    shortened = re.sub(r"--duration \ds", "--duration 300ms", commands.replace(port, here))
    # Where the server takes longer to listen than the second that a person waits.
    shortened = shortened.replace(
        "sleep 1", f"until (: </dev/tcp/127.0.0.1/{here}); do sleep 0.1; done"
    )
    process = subprocess.Popen(
        ["bash", "-ec", shortened],
        cwd=folder,
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=100)
    finally:
        with suppress(ProcessLookupError):  # the server, where a command before `kill` failed
            os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(shortened, process.returncode, out, err)


def test_the_first_commands_of_load(tmp_path: Path) -> None:
    done = run(first_block("load.md"), "8000", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "samples.arrow").stat().st_size
    assert done.stdout.count("p99") == 2


def test_the_first_commands_of_compare(tmp_path: Path) -> None:
    done = run(first_block("compare.md"), "8800", tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("*/*.arrow"))) == 12
    assert re.search(
        r"(slower|faster|unchanged|shape-changed|inconclusive) +head +p50 .* 6\+6", done.stdout
    )
