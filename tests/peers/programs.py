# SPDX-License-Identifier: Apache-2.0
"""Servers of others that `setup/install-peers` brings, started and stopped by tests."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

BIN = Path(__file__).parents[2] / "target" / "peers" / "bin"
LOCAL = "127.0.0.1"


def installed(name: str) -> Path:
    """The program; the test is skipped if it could not be installed."""
    program = BIN / name
    if not os.access(program, os.X_OK):
        pytest.skip(f"{name} is not in target/peers/bin: setup/install-peers {name}")
    return program


@contextmanager
def running(
    command: Sequence[str | Path], log: Path, **variables: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """A server until the end of the block; it gets SIGTERM, and its output is in `log`."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*map(str, command)], stdout=output, stderr=output, env=os.environ | variables
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def answer(request: str | Request) -> bytes:
    """The body of an answer; raises ConnectionError until the server listens and answers."""
    try:
        with urlopen(request) as found:
            return bytes(found.read())
    except URLError as error:
        raise ConnectionError(error) from error
