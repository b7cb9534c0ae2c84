# SPDX-License-Identifier: Apache-2.0
"""One session with programs, twice: they run alone, and each of them under the hook."""

import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import pytest
from tests.hook.hooked import COMMAND, Behaviour, plain, rules
from tests.waiting import wait_for

from tare.lab.environments import ports

RULES = rules("e", "Host", scope="all", direction="both") + rules(
    "never there", scope="all", direction="both", action="block"
)
SECONDS = 30
Session = TypeVar("Session")
Command = Sequence[str | Path]
# Puts a command behind the hook, or leaves it as it is.
Wrap = Callable[[Command], Command]


def need(*programs: str) -> None:
    """Skips a test whose programs are not there."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def free_port() -> int:
    return ports.free_port("127.0.0.1")


def both(session: Callable[[Wrap], Session], folder: Path) -> Session:
    """What a session returns, which is the same under the hook, which saw something of it.

    A program that did not load the library has a line of tare-hook's more on its stderr.
    """
    file = folder / "rules.toml"
    file.write_text(RULES)
    events: list[Path] = []

    def hook(command: Command) -> Command:
        events.append(folder / f"events-{len(events)}.jsonl")
        return [COMMAND, "--rules", file, "--events", events[-1], "--", *command]

    expected = session(lambda command: command)
    assert session(hook) == expected
    assert any(path.stat().st_size for path in events)
    return expected


def same(command: Command, folder: Path, env: Mapping[str, str] | None = None) -> Behaviour:
    """How one program behaves, which is the same under the hook."""
    return both(lambda wrap: plain(wrap(command), folder, env), folder)


@contextmanager
def serving(command: Command, port: int, code: int = 0) -> Iterator[None]:
    """A server that listens on 127.0.0.1, and ends with `code` after SIGTERM."""

    def ended_or_listening() -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return True
        return process.poll() is not None

    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    try:
        wait_for(ended_or_listening, "the server")
        yield
    finally:
        process.terminate()
        try:
            _, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            _, err = process.communicate()
    ended = process.returncode if process.returncode >= 0 else 128 - process.returncode
    assert ended == code, err
    assert "tare-hook:" not in err, err
