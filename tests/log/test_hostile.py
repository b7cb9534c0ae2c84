# SPDX-License-Identifier: Apache-2.0
"""Whatever stands in a segment, no program that logs and no reader crashes or hangs."""

import os
import signal
import struct
import subprocess
from pathlib import Path

import pytest
from tests.hostile.attacks.segment import Segment, at, size
from tests.log import jvm
from tests.log.conftest import TARE_LOG, dump
from tests.log.languages import command
from tests.log.mutations import logging, mutate
from tests.log.test_failures import collecting, ended
from tests.log.test_memory_layout import vector
from tests.waiting import SECONDS, wait_for

TEXT = (Path(__file__).parent / "hostile.txt").read_text()
LINES = [line.split() for line in TEXT.splitlines() if not line.startswith("#")]
HOSTILE = [(int(place), bytes.fromhex(content)) for place, content, *_ in LINES]
RING = size("tare_log_process")
CHANNEL = at("tare_log_process", "channels") + size("tare_log_process_channel")
CHANGES = 10_000
"""At random; `python -m tests.soak log-mutations` makes more."""
BEGIN = {
    "tare_log_process_channel": CHANNEL,
    "tare_log_table": at("tare_log_process", "tables"),
    "tare_log_ring": RING,
    "tare_shm_ring": RING,
}


def test_places_are_those_of_the_header() -> None:
    for place, _, _, type_, field, *rest in LINES:
        if type_ in BEGIN or type_ in ("tare_shm_header", "tare_log_process"):
            beyond = int(rest[1]) if rest else 0
            assert int(place) == BEGIN.get(type_, 0) + at(type_, field) + beyond


def goes_on(words: list[str], folder: Path) -> None:
    """A program that logs goes on whatever is written into its segment."""
    with logging(words, folder / "nobody") as program:
        fd = program.open_segment()
        for place, content in HOSTILE:
            before = os.pread(fd, len(content), place)
            os.pwrite(fd, content, place)
            program.begin_step()
            program.end_step()
            os.pwrite(fd, before, place)
        for place, content in HOSTILE:
            os.pwrite(fd, content, place)
        program.begin_step()
        program.end_step()
        os.close(fd)
        program.end()


@pytest.mark.parametrize("language", ["C", "Rust", "Python"])
def test_programs_go_on_whatever_is_in_their_segment(language: str, tmp_path: Path) -> None:
    goes_on(command(language, "lines"), tmp_path)


def test_java_programs_go_on_whatever_is_in_their_segment(java: list[str], tmp_path: Path) -> None:
    goes_on([*java, jvm.LOGGING, "lines"], tmp_path)


@pytest.mark.parametrize("language", ["C", "Rust", "Python"])
def test_programs_and_their_collector_go_on_whatever_changes(language: str, tmp_path: Path) -> None:
    assert mutate(command(language, "lines"), tmp_path, 1, CHANGES)


def test_java_and_its_collector_go_on_whatever_changes(java: list[str], tmp_path: Path) -> None:
    assert mutate([*java, jvm.LOGGING, "lines"], tmp_path, 1, CHANGES)


def filled(number: int) -> Segment:
    """Of this number, with a channel, and the records of vector.txt in the first ring."""
    segment = Segment()
    segment.write("first", "Q", number)
    os.pwrite(segment.fd, struct.pack("<4I", 1, 1, 0, 7), CHANNEL)
    os.pwrite(segment.fd, b"numbers", at("tare_log_process", "names"))
    segment.write("channels_used", "I", 2)
    segment.write("rings_used", "I", 1)
    words = [word for record in vector() for word in record]
    os.pwrite(segment.fd, struct.pack(f"<{len(words)}Q", *words), RING + size("tare_log_ring"))
    segment.head(0, len(words))
    return segment


def test_collector_goes_on_whatever_is_in_a_segment(tmp_path: Path) -> None:
    with collecting(tmp_path) as collector:
        for number, (place, content) in enumerate(HOSTILE):
            segment = filled(number)
            os.pwrite(segment.fd, content, place)
            segment.hand_over(str(tmp_path / "socket")).close()
            os.close(segment.fd)
        assert collector.poll() is None
        assert "damaged" not in ended(collector)
    assert len(dump(tmp_path / "events.log")) > len(HOSTILE)


def test_whatever_is_in_a_segment_is_recovered_or_refused(tmp_path: Path) -> None:
    out = tmp_path / "recovered.log"
    for place, content in HOSTILE:
        segment = filled(0)
        os.pwrite(segment.fd, content, place)
        path = f"/proc/{os.getpid()}/fd/{segment.fd}"
        words = [TARE_LOG, "recover", path, "--out", str(out)]
        done = subprocess.run(words, capture_output=True, check=False, timeout=SECONDS)
        assert done.returncode in (0, 2), (place, content, done.stderr)
        if done.returncode == 0:
            read = subprocess.run([TARE_LOG, "dump", str(out)], capture_output=True, check=True)
            assert b"damaged" not in read.stderr
            out.unlink()
        os.close(segment.fd)


def test_a_program_does_not_wait_for_a_ring_that_another_has_hidden(tmp_path: Path) -> None:
    used = at("tare_log_process", "rings_used")
    with collecting(tmp_path) as collector:
        with logging(command("C", "lines"), tmp_path / "socket") as program:
            os.kill(collector.pid, signal.SIGSTOP)
            program.begin_step()
            fd = program.open_segment()
            # Then the longest event, of 64 * 63 bytes, has no room in 64 KiB.
            wait_for(lambda: struct.unpack("Q", os.pread(fd, 8, RING))[0] > 8192 - 504)
            os.pwrite(fd, bytes(4), used)
            os.kill(collector.pid, signal.SIGCONT)
            program.end_step()
            os.close(fd)
            program.end()
        assert "damaged" not in ended(collector)
    assert dump(tmp_path / "events.log")
