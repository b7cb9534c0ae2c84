# SPDX-License-Identifier: Apache-2.0
"""Who comes to a collector's socket, and what they can do to it."""

import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from tests.log.conftest import TARE_LOG, count, dump
from tests.log.test_failures import collecting, ended
from tests.waiting import SECONDS, wait_for

FEW = ["sh", "-c", 'ulimit -n 64 && exec "$@"', "few"]
# More programs than find room under a limit of 64 descriptors; until their input ends.
MANY = 24
SCRIPT = f"""
import os, sys
from tare.log import Channel
channel = Channel("numbers")
for number in range({MANY}):
    if os.fork() == 0:
        channel.log(number)
        break
sys.stdin.read()
"""


@contextmanager
def crowd(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Programs that each have logged one event, and wait."""
    command = [sys.executable, "-c", SCRIPT]
    variables = os.environ | {"TARE_LOG": str(folder / "socket"), "TARE_LOG_RING": "64K"}
    with subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, text=True) as programs:
        yield programs


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_more_programs_than_descriptors(number: signal.Signals, tmp_path: Path) -> None:
    """Those that are there are served, and signals are heard."""
    with collecting(tmp_path, "events.log", *FEW) as collector:
        assert collector.stderr is not None
        with crowd(tmp_path):
            first = collector.stderr.readline()
            wait_for(lambda: count(tmp_path / "events.log") > 5)
            time.sleep(0.2)
            collector.send_signal(number)
            _, told = collector.communicate(timeout=SECONDS)
    assert (collector.returncode, told) == (0, "")
    assert first == (
        "tare-log: new programs cannot connect: Too many open files. Connected"
        " programs are still served\n"
    )
    assert 5 < len(dump(tmp_path / "events.log")) < MANY


def test_programs_come_in_when_others_have_gone(tmp_path: Path) -> None:
    with collecting(tmp_path, "events.log", *FEW) as collector:
        with crowd(tmp_path):
            wait_for(lambda: count(tmp_path / "events.log") > 5)
        wait_for(lambda: count(tmp_path / "events.log") == MANY)
        ended(collector)


def test_who_connects_has_room_for_the_descriptor_that_it_sends(
    compiled: Callable[[str], Path], tmp_path: Path
) -> None:
    """Also where all send theirs at once, long after they came."""
    variables = os.environ | {"TARE_LOG": str(tmp_path / "socket")}
    with collecting(tmp_path, "events.log", *FEW) as collector, ExitStack() as stack:
        connections = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(30)]
        for connection in connections:
            connection.connect(str(tmp_path / "socket"))
        # It comes in behind them.
        subprocess.run([compiled("linked")], check=True, env=variables)
        collector.send_signal(signal.SIGSTOP)
        with Path("/dev/null").open("rb") as sent:
            for connection in connections:
                with suppress(BrokenPipeError):  # its place is another's
                    socket.send_fds(connection, [b"x"], [sent.fileno()])
        collector.send_signal(signal.SIGCONT)
        told = ended(collector)
    assert "it is not a segment of Tare" in told
    assert "it sent no descriptor" not in told


def test_a_command_keeps_its_limit_of_descriptors(tmp_path: Path) -> None:
    out = str(tmp_path / "events.log")
    run = [TARE_LOG, "run", "--out", out, "--", "sh", "-c", "ulimit -n"]
    limited = ["sh", "-c", 'ulimit -S -n 100 && exec "$@"', "limited"]
    done = subprocess.run([*limited, *run], check=True, capture_output=True, text=True)
    assert done.stdout == "100\n"


@contextmanager
def silent(folder: Path, count: int) -> Iterator[None]:
    """Connections over which nothing is said."""
    with ExitStack() as stack:
        for _ in range(count):
            connection = stack.enter_context(socket.socket(socket.AF_UNIX))
            connection.connect(str(folder / "socket"))
        yield


def test_who_says_nothing_keeps_nobody_waiting(
    compiled: Callable[[str], Path], tmp_path: Path
) -> None:
    """A rule holds from the first event on where the collector answers in time."""
    (tmp_path / "rules").write_text("[[rule]]\nchannel = 'numbers'\nhandler = 'null'\n")
    options = {"--socket": "socket", "--out": "events.log", "--rules": "rules"}
    words = [word for option, name in options.items() for word in (option, str(tmp_path / name))]
    command = [TARE_LOG, "collect", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as collector:
        wait_for((tmp_path / "socket").exists)
        with silent(tmp_path, 30):
            variables = os.environ | {"TARE_LOG": str(tmp_path / "socket")}
            subprocess.run([compiled("linked")], check=True, env=variables)
            assert ended(collector) == ""
    assert {row.channel for row in dump(tmp_path / "events.log")} == {"texts", "work>", "work<"}


def test_who_says_nothing_takes_nobodys_place(tmp_path: Path) -> None:
    with collecting(tmp_path, "events.log", *FEW) as collector:
        with silent(tmp_path, 100), crowd(tmp_path):
            wait_for(lambda: count(tmp_path / "events.log") > 5)
        ended(collector)


def test_descriptors_that_are_not_asked_for_are_closed(tmp_path: Path) -> None:
    (tmp_path / "sent").touch()
    with collecting(tmp_path) as collector, (tmp_path / "sent").open() as sent:
        folder = Path(f"/proc/{collector.pid}/fd")
        for count in [0, 2, 3] * 4:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(tmp_path / "socket"))
                socket.send_fds(connection, [b"x"], [sent.fileno()] * count)
                # Who sent several would come again without an answer.
                assert connection.recv(1) == (b"\0" if count else b"")
        assert str(tmp_path / "sent") not in map(os.path.realpath, folder.iterdir())
        told = ended(collector)
    reason = "could not connect: it sent no descriptor, or several"
    assert f"tare-log: process {os.getpid()} {reason}\n" in told


SIZE = 1 << 30  # bytes of a segment that holds nothing


def sealed(magic: bytes = b"TAREshm1", version: int = 4, kind: int = 3, size: int = SIZE) -> int:
    """Begins as a segment does (docs/formats/shm.md), and holds nothing."""
    fd = os.memfd_create("segment", os.MFD_ALLOW_SEALING)
    os.pwrite(fd, magic + struct.pack("=IIQ", version, kind, size), 0)
    os.ftruncate(fd, SIZE)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return fd


STRANGE: list[tuple[str, Callable[[], int]]] = [
    ("it is not a segment of Tare", lambda: os.open("/dev/null", os.O_RDWR)),
    ("it is not a segment of Tare", lambda: sealed(magic=b"TAREshm0")),
    (
        "its size is not sealed, so another process could truncate it",
        lambda: os.memfd_create("segment"),
    ),
    ("it has the wrong size", lambda: sealed(size=SIZE // 2)),
    ("it is a segment of another part of Tare", lambda: sealed(kind=1)),
    ("it is damaged", sealed),
]


@pytest.mark.parametrize(("reason", "made"), STRANGE)
def test_what_is_no_segment_is_refused_in_words(
    reason: str, made: Callable[[], int], tmp_path: Path
) -> None:
    told = f"the shared memory of process {os.getpid()} is refused: {reason}"
    assert told_of(made(), tmp_path) == f"tare-log: {told}\n"


def test_a_segment_of_another_version(tmp_path: Path) -> None:
    why = "it uses another version of libtare_log than this collector"
    told = f"process {os.getpid()} is refused: {why}"
    assert told_of(sealed(version=3), tmp_path) == f"tare-log: {told}\n"


def told_of(fd: int, folder: Path) -> str:
    """By the collector, of what this descriptor stands for."""
    with os.fdopen(fd, "rb"), collecting(folder) as collector:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(folder / "socket"))
            socket.send_fds(connection, [b"x"], [fd])
            assert connection.recv(1) == b"\0", (
                "an answer: without one, a program would connect again"
            )
        return ended(collector)
