# SPDX-License-Identifier: Apache-2.0
"""`tare log sync` between two hosts: the one of this test, and namespaces with another clock, name
and `boot_id`, behind a relay that delays packets on either way."""

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.log.conftest import TARE_LOG, Row, dump, ran
from tests.rights import may_make_namespaces
from tests.waiting import SECONDS

BOOT = "00112233-4455-6677-8899-aabbccddeeff"
AHEAD_NS = 5_000 * 10**9
PACKET = 120
needs_namespaces = pytest.mark.skipif(
    not may_make_namespaces(), reason="no namespaces may be made here"
)


def there(folder: Path, *command: object) -> list[str]:
    """A command on the other host."""
    boot = folder / "boot_id"
    boot.write_text(BOOT + "\n")
    words = " ".join(str(word) for word in command)
    script = (
        f"mount --bind {boot} /proc/sys/kernel/random/boot_id && hostname there && exec {words}"
    )
    spaces = ["--mount", "--uts", "--time", "--fork", "--kill-child"]
    return ["unshare", *spaces, "--monotonic", "5000", "sh", "-c", script]


@contextmanager
def server(command: list[str]) -> Iterator[tuple[str, int]]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        address, port = line.split()[-1].rsplit(":", 1)
        try:
            yield address, int(port)
        finally:
            process.send_signal(signal.SIGKILL if command[0] == "unshare" else signal.SIGINT)


@contextmanager
def relay(to: tuple[str, int], forth_ms: float, back_ms: float) -> Iterator[str]:
    """Its address. Each packet waits so long on its way; answers go to who asked last."""
    front, behind = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    front.bind(("127.0.0.1", 0))
    behind.connect(to)
    asked: list[Any] = []

    def forth() -> None:
        while packet := front.recvfrom(2048):
            if not packet[0]:
                return
            asked[:] = [packet[1]]
            time.sleep(forth_ms / 1e3)
            behind.send(packet[0])

    def back() -> None:
        while packet := behind.recv(2048):
            time.sleep(back_ms / 1e3)
            front.sendto(packet, asked[0])

    threads = [threading.Thread(target=way, daemon=True) for way in (forth, back)]
    for thread in threads:
        thread.start()
    host, port = front.getsockname()
    try:
        yield f"{host}:{port}"
    finally:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", (host, port))
        behind.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(SECONDS)
        front.close()
        behind.close()


def sync(host: str, *more: object) -> dict[str, Any]:
    command = [TARE_LOG, "sync", host, "--json", *map(str, more)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=SECONDS)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@needs_namespaces
@pytest.mark.parametrize(("forth_ms", "back_ms"), [(0, 0), (5, 5), (20, 0), (0, 20)], ids=str)
def test_events_of_two_hosts_on_one_clock(
    forth_ms: float, back_ms: float, compiled: Callable[[str], Path], tmp_path: Path
) -> None:
    """The other's clocks are ahead by 5000 s, and both have one tick counter: so the truth is
    known. What the ways differ by displaces the other's events, within the bound."""
    here, other = tmp_path / "here.log", tmp_path / "there.log"
    serve = [TARE_LOG, "sync", "--serve", "127.0.0.1:0"]
    run = [TARE_LOG, "run", "--out", other, "--", compiled("timed"), 300, 100]
    with (
        server(there(tmp_path, *serve)) as address,
        relay(address, forth_ms, back_ms) as host,
    ):
        first = sync(host, "--file", here)
        ran(here, compiled("timed"), 300, 100)
        subprocess.run(there(tmp_path, *run), check=True)
        bounds = [bounded(first, forth_ms + back_ms)]
        displaced(here, other, forth_ms - back_ms, bounds)
        bounds.append(bounded(sync(host, "--file", here), forth_ms + back_ms))
        displaced(here, other, forth_ms - back_ms, bounds)
    whole = tmp_path / "whole.log"
    recover = [TARE_LOG, "recover", str(here), "--out", str(whole)]
    subprocess.run(recover, check=True, capture_output=True)
    displaced(whole, other, forth_ms - back_ms, bounds)


def bounded(told: dict[str, Any], ways_ms: float) -> int:
    """The bound that is told, which must hold and be half of the round trip."""
    assert told["there"]["host"] == "there"
    assert told["there"]["boot"] == BOOT != told["here"]["boot"]
    wrong = told["there"]["monotonic_ns"] - told["here"]["monotonic_ns"] - AHEAD_NS
    error, trip = told["error_ns"], told["round_trip_ns"]
    assert abs(wrong) <= error
    assert trip >= ways_ms * 1_000_000
    assert trip / 2 <= error <= trip / 2 * 1.001 + 10
    # Both have the same system clock.
    assert abs(told["system_clock_ahead_ns"]) <= error
    assert isinstance(error, int)
    return error


def displaced(here: Path, other: Path, difference_ms: float, bounds: list[int]) -> None:
    """Rows of both files in one dump: those of here where they were, those of there by half of
    what the ways differ, and never by more than is told."""
    command = [TARE_LOG, "dump", str(here), str(other), "--format", "jsonl"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    told = re.search(
        r"times of there are converted to the clock of .*, to within ([\d.]+) (\S+)", done.stderr
    )
    assert told
    within = float(told[1]) * {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[told[2]] * 1.01
    # The bound grows by 200 millionths of the time since: not beyond a whole test's.
    assert max(bounds) * 0.99 <= within <= max(bounds) + SECONDS * 200_000
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    pids = list(dict.fromkeys(row["pid"] for row in rows))
    assert len(rows) == 600
    late = {
        pid: np.array([row["time_ns"] - row["payload"] for row in rows if row["pid"] == pid])
        for pid in pids
    }
    at_home, away = late.values()
    assert -5_000 < at_home.min() < 50_000
    assert abs(away.min()) <= within + 50_000
    # Questions come late by the first way: the other's clock seems to be further ahead.
    assert away.min() == pytest.approx(-difference_ms / 2 * 1e6, abs=3e6)
    assert_near(dump(other))
    out = other.with_suffix(".parquet")
    export = [TARE_LOG, "export", str(here), str(other), "--to", "parquet", "--out", str(out)]
    subprocess.run(export, check=True, capture_output=True)
    table = pq.read_table(out)
    (error,) = set(table["clock_error_ns"].to_pylist()) - {None}
    assert error == pytest.approx(within, rel=0.02)
    is_away = pc.equal(table["host"], "there")
    assert table.filter(is_away)["clock_error_ns"].null_count == 0
    assert table.filter(pc.invert(is_away))["clock_error_ns"].null_count == 300


def assert_near(rows: list[Row]) -> None:
    assert -5_000 < min(row.time_ns - int(row.payload) for row in rows) < 50_000


@needs_namespaces
def test_files_that_nothing_relates(compiled: Callable[[str], Path], tmp_path: Path) -> None:
    """Each has its own system clock, which is said; also where one stands behind the other. Their
    programs have one number, and are told apart."""
    here, other = tmp_path / "here.log", tmp_path / "there.log"
    program = ["unshare", "--pid", "--fork", compiled("timed"), 100, 100]
    subprocess.run([TARE_LOG, "run", "--out", here, "--", *map(str, program)], check=True)
    run = [TARE_LOG, "run", "--out", other, "--", *program]
    subprocess.run(there(tmp_path, *run), check=True)
    both = tmp_path / "both.log"
    both.write_bytes(here.read_bytes() + other.read_bytes())
    for files in ([here, other], [both]):
        command = [TARE_LOG, "stats", "--json", *map(str, files)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        assert "times of there use its own clock" in done.stderr
        told = json.loads(done.stdout)
        assert (told["events"], told["processes"]) == (200, 2)
        out = tmp_path / "out.json"
        export = [TARE_LOG, "export", *map(str, files), "--to", "chrome", "--out", str(out)]
        subprocess.run(export, check=True, capture_output=True)
        instants = [
            event for event in json.loads(out.read_text())["traceEvents"] if event["ph"] == "i"
        ]
        assert len(instants) == 200
        assert {instant["pid"] for instant in instants} == {1, 1 + (1 << 22)}
    assert_near(dump(both))


def test_a_server_answers_questions_alone() -> None:
    """Never with more than it was asked with."""
    question = b"TSYN" + b"\x01\x00\x01\x00" + (7).to_bytes(8, "little")
    question = question.ljust(PACKET, b"\0")
    noise = [b"", b"x", os.urandom(PACKET), question[:-1], question[:6] + b"\2" + question[7:]]
    with (
        server([TARE_LOG, "sync", "--serve", "127.0.0.1:0"]) as address,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking,
    ):
        asking.connect(address)
        asking.settimeout(SECONDS)
        for packet in noise:
            asking.send(packet)
        asking.send(question)
        answer = asking.recv(4096)
        assert len(answer) == PACKET
        assert answer[:4] == b"TSYN"
        assert answer[6] == 2
        assert answer[8:16] == question[8:16]
        asking.send(question[:4] + b"\x02\x00" + question[6:])
        assert asking.recv(4096)[4:6] == b"\x01\x00"


def lying(folder: Path, realtime_ns: int, *more: object) -> subprocess.CompletedProcess[str]:
    """What is told of a server whose name steers the terminal, and whose clock says this; the
    whole file can have no more than 10 bytes."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))

        def answer() -> None:
            while packet := other.recvfrom(PACKET):
                question, client = packet
                if not question:
                    return
                now = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
                times = b"".join(
                    when.to_bytes(8, "little", signed=True) for when in (now, now, realtime_ns)
                )
                name = "there\x1b[2J\u202e".encode().ljust(64, b"\0")
                begin = question[:6] + b"\2\0" + question[8:16]
                other.sendto(begin + times + os.urandom(16) + name, client)

        answering = threading.Thread(target=answer)
        answering.start()
        host = f"127.0.0.1:{other.getsockname()[1]}"
        limit = ["prlimit", "--fsize=10", TARE_LOG, "sync", host]
        done = subprocess.run(
            [*limit, *map(str, more)],
            check=False,
            capture_output=True,
            text=True,
            cwd=folder,
            timeout=SECONDS,
            # SIGXFSZ stays ignored.
            restore_signals=False,
        )
        other.sendto(b"", other.getsockname())
        answering.join(SECONDS)
    return done


def test_a_server_that_lies(tmp_path: Path) -> None:
    told = lying(tmp_path, time.time_ns())
    assert told.returncode == 0
    assert told.stdout.startswith("there\\u{1b}[2J\\u{202e}: system clock ")
    never = lying(tmp_path, -(2**63), "--file", "never.log")
    assert (never.returncode, never.stdout) == (1, "")
    assert len(never.stderr.splitlines()) == 1
    assert "its answer contains impossible times" in never.stderr
    assert not list(tmp_path.iterdir())


def test_a_file_that_could_not_be_written_is_not_left(tmp_path: Path) -> None:
    """Nor is one that there was nothing for; what was there stays."""
    full = lying(tmp_path, time.time_ns(), "--file", "new.log")
    assert full.returncode == 1
    assert "the result was not written" in full.stderr
    nobody = [TARE_LOG, "sync", "127.0.0.1:1", "--file", str(tmp_path / "new.log")]
    assert subprocess.run(nobody, check=False, capture_output=True).returncode == 1
    assert not list(tmp_path.iterdir())
    (tmp_path / "old.log").touch()
    assert lying(tmp_path, time.time_ns(), "--file", "old.log").returncode == 1
    assert [file.stat().st_size for file in tmp_path.iterdir()] == [0]


@pytest.mark.parametrize("says", ["nothing", "another version"])
def test_a_server_that_is_none(says: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        other.settimeout(SECONDS)
        host = f"127.0.0.1:{other.getsockname()[1]}"
        command = [TARE_LOG, "sync", host]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            packet, client = other.recvfrom(4096)
            assert len(packet) == PACKET
            if says != "nothing":
                other.sendto(b"late", client)
                other.sendto(packet[:4] + b"\x09\x00\x02\x00" + packet[8:], client)
            _, error = process.communicate(timeout=SECONDS)
        assert process.returncode == 1
        assert len(error.splitlines()) == 1
        assert ("version 9" if says != "nothing" else "no program answers") in error
