# SPDX-License-Identifier: Apache-2.0
"""A collector is sent descriptors that are no segments."""

import array
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.hostile.attacks.segment import Segment, at
from tests.log.conftest import TARE_LOG, compiled, dump, locked
from tests.log.test_failures import collecting, counting, ended
from tests.log.test_kills import agree
from tests.waiting import SECONDS, wait_for

__all__ = ["compiled"]

Compiled = Callable[[str], Path]


@contextmanager
def opened(kind: str, folder: Path) -> Iterator[int]:
    """A descriptor of this kind."""
    if kind == "socket":
        with socket.socket(socket.AF_UNIX) as connection:
            yield connection.fileno()
        return
    others = {"output": folder / "events.log", "directory": folder, "device": Path("/dev/null")}
    path = others[kind]
    flags = os.O_RDONLY | (os.O_DIRECTORY if kind == "directory" else 0)
    descriptor = os.open(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


ACCEPTED, REFUSED = b"\1", b"\0"


def send(path: Path, *descriptors: int) -> bytes:
    """Hands them over; the answer, empty if the collector closes the connection."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(SECONDS)
        connection.connect(str(path))
        rights = array.array("i", descriptors)
        connection.sendmsg([b"\1"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        return connection.recv(1)


@pytest.mark.parametrize("kind", ["output", "directory", "device", "socket"])
def test_other_descriptors_are_refused_and_the_output_stays_locked(
    kind: str, tmp_path: Path
) -> None:
    with collecting(tmp_path) as collector:
        with opened(kind, tmp_path) as descriptor:
            assert send(tmp_path / "socket", descriptor) == REFUSED
        command = [TARE_LOG, "run", "--out", str(tmp_path / "events.log"), "--", "true"]
        second = subprocess.run(command, capture_output=True, text=True, check=False)
        assert second.returncode == 2
        assert f"collector {collector.pid} writes to it" in second.stderr
        told = ended(collector)
    assert f"process {os.getpid()}" in told
    assert dump(tmp_path / "events.log") == []


def test_flood_of_refused_descriptors_prints_few_lines(tmp_path: Path) -> None:
    with collecting(tmp_path) as collector:
        with opened("device", tmp_path) as descriptor:
            for _ in range(2_000):
                assert send(tmp_path / "socket", descriptor) == REFUSED
        told = ended(collector).splitlines()
    assert len(told) < 1_000
    assert any("more such warnings were omitted" in line for line in told)


def test_refused_segments_are_not_left_mapped(tmp_path: Path) -> None:
    """A collector can have 65,530 mappings."""
    segment = Segment()
    with collecting(tmp_path) as collector:
        segment.write("ring_words", "Q", 3)
        for _ in range(20):
            assert send(tmp_path / "socket", segment.fd) == REFUSED
        os.pwrite(segment.fd, b"\3", at("tare_shm_header", "version"))
        for _ in range(20):
            assert send(tmp_path / "socket", segment.fd) == REFUSED
        maps = Path(f"/proc/{collector.pid}/maps").read_text()
        ended(collector)
    assert "memfd:tare-log" not in maps


@pytest.mark.parametrize("copies", [2, 3, 200])
def test_output_that_is_sent_several_times_at_once_stays_locked(
    copies: int, tmp_path: Path
) -> None:
    with collecting(tmp_path) as collector:
        with opened("output", tmp_path) as descriptor:
            answer = send(tmp_path / "socket", *[descriptor] * copies)
        assert (tmp_path / "events.log").stat().st_ino in locked(collector.pid)
        assert answer == REFUSED
        assert "it sent no descriptor, or several" in ended(collector)


@pytest.mark.parametrize("place", [0, 1])
def test_segment_that_is_sent_beside_another_stays_locked(
    place: int, compiled: Compiled, tmp_path: Path
) -> None:
    with collecting(tmp_path) as collector, counting(compiled, tmp_path) as program:
        served, other = segment_of(program.pid), Segment().fd
        both = (served, other) if place == 0 else (other, served)
        answer = send(tmp_path / "socket", *both)
        assert os.fstat(served).st_ino in locked(collector.pid)
        assert answer == REFUSED
        os.close(served)
        os.close(other)
        program.kill()
        program.wait()
        ended(collector)
    agree(tmp_path / "events.log", tmp_path / "page")


def segment_of(pid: int) -> int:
    """A descriptor of the segment that a program has."""

    def paths() -> list[Path]:
        links = Path(f"/proc/{pid}/fd").iterdir()
        return [link for link in links if str(link.readlink()).startswith("/memfd:tare-log")]

    wait_for(paths)
    return os.open(paths()[0], os.O_RDWR)


def test_segment_that_is_sent_again_and_again_stays_locked(
    compiled: Compiled, tmp_path: Path
) -> None:
    """Each copy is closed by the collector, which releases the lock on its segment."""
    with collecting(tmp_path) as collector, counting(compiled, tmp_path) as program:
        descriptor = segment_of(program.pid)
        for _ in range(3):
            assert send(tmp_path / "socket", descriptor) == ACCEPTED
        other = tmp_path / "other"
        other.mkdir()
        with collecting(other) as second:
            assert send(other / "socket", descriptor) == REFUSED
            assert f"another collector (process {collector.pid})" in ended(second)
        os.close(descriptor)
        program.kill()
        program.wait()
        ended(collector)
    agree(tmp_path / "events.log", tmp_path / "page")


def test_search_for_programs_leaves_the_locks_of_segments_that_are_served(tmp_path: Path) -> None:
    """The search finds a segment again that it has taken over, under other descriptors."""
    path, other = tmp_path / "socket", tmp_path / "other"
    other.mkdir()
    first = Segment()
    top = max(int(link.name) for link in Path("/proc/self/fd").iterdir())
    copies = [os.dup(first.fd)]
    while copies[-1] < top + 5:
        copies.append(os.dup(first.fd))
    # The search looks at descriptors in their order: at this one after all copies.
    last = Segment()
    assert last.fd > copies[-1]
    try:
        for segment in (first, last):
            segment.name_socket(path)
        with first.map(), last.map(), collecting(tmp_path) as collector:
            maps, found = Path(f"/proc/{collector.pid}/maps"), f" {os.fstat(last.fd).st_ino} "
            wait_for(lambda: found in maps.read_text(), "the search")
            assert os.fstat(first.fd).st_ino in locked(collector.pid)
            with collecting(other) as second:
                assert send(other / "socket", first.fd) == REFUSED
                assert f"another collector (process {collector.pid})" in ended(second)
            ended(collector)
    finally:
        for descriptor in [first.fd, last.fd, *copies]:
            os.close(descriptor)
