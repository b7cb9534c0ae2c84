# SPDX-License-Identifier: Apache-2.0
"""The programs of one user cost a collector of root no event of another user's program."""

import ctypes
import os
import shutil
import signal
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow.csv import read_csv
from tests.hostile.attacks.segment import Segment, acting_as, at, size
from tests.hostile.conftest import NOBODY, attack, says
from tests.log.conftest import TARE_LOG, compiled
from tests.log.test_failures import collecting, ended
from tests.waiting import SECONDS, wait_for

__all__ = ["compiled"]

EVENTS = 800_000
ATTACKS = [
    *("many_rings", "refill", "long_names", "sparse", "changes"),
    *("connections", "descriptors", "slow_to_close", "mixed"),
]
USERS = {"root": [], "another": ["setpriv", "--reuid=65533", "--regid=65533", "--clear-groups"]}


@contextmanager
def awaited(program: Path, user: str) -> "Iterator[subprocess.Popen[str]]":
    """A program that has logged its first event, and goes on when it is told."""
    command = [*USERS[user], str(program), str(EVENTS)]
    variables = os.environ | {"TARE_LOG": str(program.parent / "socket")}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=variables, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def go_on(program: "subprocess.Popen[str]") -> None:
    """Until its end."""
    program.communicate("\n", timeout=SECONDS)
    assert program.returncode == 0


def numbers(file: Path, pid: int) -> pa.ChunkedArray:
    """What a program has logged; all of the file can be read."""
    command = [TARE_LOG, "dump", str(file), "--channel", "awaited"]
    done = subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)
    assert b"damaged" not in done.stderr
    table = read_csv(pa.BufferReader(done.stdout))
    return table.filter(pc.equal(table["pid"], pid))["payload"]


def test_nobody_logs_as_the_process_of_another_user(
    compiled: Callable[[str], Path], open_to_all: Path
) -> None:
    program = Path(shutil.copy(compiled("awaited"), open_to_all))
    with collecting(open_to_all) as collector, awaited(program, "another") as victim:
        with attack("impostor", open_to_all / "socket", victim.pid) as impostor:
            assert says(impostor) == "b'\\x00'"
        go_on(victim)
        told = ended(collector)
    assert f"is refused: it belongs to process {victim.pid}" in told
    assert len(numbers(open_to_all / "events.log", victim.pid)) == EVENTS


@pytest.mark.exhaustive
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("name", ATTACKS)
def test_attack_costs_no_event_of_another_user(
    name: str, user: str, compiled: Callable[[str], Path], open_to_all: Path
) -> None:
    program = Path(shutil.copy(compiled("awaited"), open_to_all))
    with (
        collecting(open_to_all) as collector,
        awaited(program, user) as victim,
        attack(name, open_to_all / "socket"),
    ):
        go_on(victim)
        told = ended(collector)
    assert numbers(open_to_all / "events.log", victim.pid).equals(
        pa.chunked_array([range(EVENTS)], pa.int64())
    )
    assert len(told.splitlines()) < 100


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["changes", "connections", "descriptors", "slow_to_close"])
def test_program_that_starts_beside_an_attack_is_served(
    name: str, compiled: Callable[[str], Path], open_to_all: Path
) -> None:
    """In time for its policy to hold from the first event on."""
    program = Path(shutil.copy(compiled("awaited"), open_to_all))
    with collecting(open_to_all) as collector, attack(name, open_to_all / "socket"):
        with awaited(program, "root") as victim:
            go_on(victim)
        ended(collector)
    assert len(numbers(open_to_all / "events.log", victim.pid)) == EVENTS


def test_program_whose_connection_is_closed_without_an_answer_comes_again(
    compiled: Callable[[str], Path], tmp_path: Path
) -> None:
    """So a collector under attack closes connections that say nothing; a refusal is an answer."""
    path = str(tmp_path / "socket")
    variables = os.environ | {"TARE_LOG": path}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.settimeout(SECONDS)
        listener.bind(path)
        listener.listen()
        command = [str(compiled("awaited")), "1"]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=variables, stdin=pipe, stdout=pipe) as program:
            for _ in range(3):
                listener.accept()[0].close()
            connection, _ = listener.accept()
            _, descriptors, *_ = socket.recv_fds(connection, 1, 1)
            assert len(descriptors) == 1
            os.close(descriptors[0])
            connection.send(b"\0")
            connection.close()
            program.communicate(b"\n", timeout=SECONDS)
            assert program.returncode == 0
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_names_of_another_user_have_a_budget_of_bytes(open_to_all: Path) -> None:
    """Those of one segment alone would take 100 MB. They take nothing from events."""
    with (
        collecting(open_to_all) as collector,
        attack("long_names", open_to_all / "socket") as attacker,
    ):
        file, stderr = open_to_all / "events.log", collector.stderr
        assert stderr is not None
        wait_for(lambda: select([stderr], [], [], 0)[0] or file.stat().st_size > 64 << 20)
        attacker.kill()
        told = ended(collector)
    assert file.stat().st_size < 40 << 20
    (line,) = told.splitlines()
    assert f"process {attacker.pid} of user {NOBODY}: its user reached the limit of" in line


CLOSED = 0x08 | 0x10
"""FAN_CLOSE of fanotify."""


def test_collector_closes_no_descriptor_of_another_user(open_to_all: Path) -> None:
    """What a user can make slow or many is closed by another process, also beside a segment."""
    kernel = ctypes.CDLL(None, use_errno=True)
    file = open_to_all / "many"
    sent = os.open(file, os.O_RDWR | os.O_CREAT)
    watch = kernel.fanotify_init(0, os.O_RDONLY)
    if watch < 0:
        pytest.skip("the kernel has no fanotify")
    everywhere = -100  # AT_FDCWD
    mask = ctypes.c_uint64(CLOSED)
    assert kernel.fanotify_mark(watch, 1, mask, everywhere, os.fsencode(file)) == 0
    with (
        collecting(open_to_all) as collector,
        socket.socket(socket.AF_UNIX) as connection,
        os.fdopen(watch, "rb", buffering=0) as events,
    ):
        with acting_as(NOBODY):
            connection.connect(str(open_to_all / "socket"))
        collector.send_signal(signal.SIGSTOP)
        socket.send_fds(connection, [b"\1"], [Segment().fd, *[sent] * 250])
        os.close(sent)
        collector.send_signal(signal.SIGCONT)
        # The last close is one event, with the PID of the process.
        *_, opened, pid = struct.unpack_from("IBBHQii", events.read(24))
        os.close(opened)
        assert pid not in (collector.pid, os.getpid())


def sockets(pid: int) -> int:
    links = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
    return sum(link.startswith("socket:") for link in links)


def test_program_keeps_no_connection_to_a_collector_that_has_died(
    compiled: Callable[[str], Path], tmp_path: Path
) -> None:
    """Each offer of its segment would cost it one more descriptor."""
    path = str(tmp_path / "socket")
    variables = os.environ | {"TARE_LOG": path}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        command = [str(compiled("awaited")), str(2**31)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=variables, stdin=pipe, stdout=pipe) as program:
            try:
                assert program.stdin
                assert program.stdout
                assert program.stdout.readline() == b"ready\n"
                assert sockets(program.pid) == 1
                listener.close()
                program.stdin.write(b"\n")
                program.stdin.flush()
                wait_for(lambda: sockets(program.pid) == 0, "the end of the connection")
            finally:
                program.kill()


def test_silent_connections_of_another_user_take_no_place(open_to_all: Path) -> None:
    segment = Segment()
    with collecting(open_to_all), socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(open_to_all / "socket"))
        with attack("connections", open_to_all / "socket"):
            socket.send_fds(connection, [b"\1"], [segment.fd])
            assert connection.recv(1) == b"\1"


def test_programs_without_rings_take_little_memory_of_a_collector(open_to_all: Path) -> None:
    def anonymous() -> int:
        """Bytes."""
        status = Path(f"/proc/{collector.pid}/status").read_text()
        return int(status.partition("RssAnon:")[2].split()[0]) << 10

    kept, count = [], 100
    with collecting(open_to_all) as collector:
        before = anonymous()
        for _ in range(count):
            with acting_as(NOBODY):
                segment = Segment()
                memory = segment.map()
                connection = segment.hand_over(str(open_to_all / "socket"))
                kept.append((segment, memory, connection))
        assert anonymous() - before < count * (100 << 10)
        ended(collector)
    for segment, memory, connection in kept:
        memory.close()
        connection.close()
        os.close(segment.fd)


def test_reading_allocates_no_memory_that_was_never_written(open_to_all: Path) -> None:
    with (
        collecting(open_to_all) as collector,
        attack("sparse", open_to_all / "socket") as attacker,
        Path(f"/proc/{attacker.pid}/fd/{says(attacker)}").open("rb") as segment,
    ):
        words = 1 << 24
        ring = size("tare_log_process") + 7 * (size("tare_log_ring") + 8 * words)
        place = ring + at("tare_shm_ring", "tail")
        wait_for(lambda: os.pread(segment.fileno(), 8, place) == struct.pack("Q", words))
        assert os.fstat(segment.fileno()).st_blocks * 512 < 32 << 20
        ended(collector)
