# SPDX-License-Identifier: Apache-2.0
"""What a program's user is told on stderr when its events are not kept as he wants it."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from tests.log.conftest import TARE_LOG, dump
from tests.log.test_programs import Compiled
from tests.waiting import SECONDS


def told(file: Path, script: str, **variables: str) -> list[str]:
    """What the library says of a program that runs beside a collector."""
    done = subprocess.run(
        [TARE_LOG, "run", "--out", file, "--json", "--", "sh", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
        env=os.environ | variables,
    )
    return [line for line in done.stderr.splitlines() if line.startswith("tare-log: ")]


@pytest.mark.parametrize(("limit", "lacks"), [("-v 30000", "memory"), ("-n 4", "descriptors")])
def test_limits(limit: str, lacks: str, compiled: Compiled, tmp_path: Path) -> None:
    script = f"ulimit {limit} && exec {compiled('many')} 3"
    [line] = told(tmp_path / "events.log", script)
    assert f"they need more {lacks} (ulimit {limit[:2]})" in line
    alone = subprocess.run(["sh", "-c", script], check=True, capture_output=True)
    assert alone.stderr == b"", "nobody is told where no collector is named"


@pytest.mark.parametrize(
    ("name", "value"),
    [*(("RING", text) for text in ("abc", "-1", "8M0")), ("CLOCK", "foo"), ("CLOCK", "fallback")],
)
def test_variables(name: str, value: str, compiled: Compiled, tmp_path: Path) -> None:
    file, variable = tmp_path / "events.log", f"TARE_LOG_{name}"
    [line] = told(file, f"exec {compiled('many')} 3", **{variable: value})
    assert f"{variable} is not understood" in line
    assert len(dump(file)) == 3
    assert told(file, f"exec {compiled('many')} 3", **{variable: ""}) == []


def test_a_path_that_no_socket_has(compiled: Compiled) -> None:
    refused = "tare-log: TARE_LOG is not used: the path of a socket has at most 107 bytes\n"
    for length, expected in [(107, ""), (108, refused)]:
        variables = os.environ | {"TARE_LOG": "/nowhere/".ljust(length, "n")}
        program = [str(compiled("many")), "3"]
        done = subprocess.run(program, env=variables, check=True, capture_output=True, text=True)
        assert done.stderr == expected


def test_channels(compiled: Compiled, tmp_path: Path) -> None:
    file, most = tmp_path / "events.log", (1 << 14) - 1
    assert told(file, f"exec {compiled('many')} {most}") == []
    [line] = told(file, f"exec {compiled('many')} {most + 5}")
    assert "no room for more channels (16,383" in line
    assert {row.channel for row in dump(file)} == {str(number) for number in range(most)}


@pytest.mark.parametrize("stderr", ["closed", "full", "limited"])
def test_nobody_hears_it(stderr: str, compiled: Compiled, tmp_path: Path) -> None:
    """A program neither waits for who reads its stderr nor gets a signal for it."""
    heard, told = os.pipe()
    if stderr == "closed":
        os.close(heard)
    elif stderr == "full":
        os.set_blocking(told, False)
        with suppress(BlockingIOError):
            while True:
                os.write(told, bytes(4096))
        os.set_blocking(told, True)
    else:
        with (tmp_path / "stderr").open("wb") as file:
            os.dup2(file.fileno(), told)
    limits = "ulimit -f 0 && " if stderr == "limited" else ""
    script = f"{limits}exec {compiled('many')} 3 2>&{told}"
    done = subprocess.run(
        [TARE_LOG, "run", "--out", tmp_path / "events.log", "--", "bash", "-c", script],
        env=os.environ | {"TARE_LOG_RING": "abc"},
        pass_fds=[told],
        timeout=SECONDS,
        check=False,
    )
    os.close(told)
    if stderr != "closed":
        os.close(heard)
    assert done.returncode == 0
