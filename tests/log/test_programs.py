# SPDX-License-Identifier: Apache-2.0
"""What programs log from wherever they are is in the file, once and in order."""

import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.log.conftest import TARE_LOG, Row, dump, ends
from tests.rights import may_make_namespaces
from tests.waiting import SECONDS, wait_for

Compiled = Callable[[str], Path]


def memory() -> dict[str, int]:
    """What /proc/meminfo says, in KiB."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return {line.split(":")[0]: int(line.split()[1]) for line in lines}


def logged(
    compiled: Compiled,
    folder: Path,
    name: str,
    *arguments: object,
    options: tuple[str, ...] = (),
    **variables: str,
) -> tuple[list[Row], str, dict[str, int]]:
    """The rows, the program's own output, and what tare-log counts."""
    file = folder / "events.log"
    command = [TARE_LOG, "run", *options, "--out", file, "--json", "--", compiled(name), *arguments]
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        env=os.environ | variables,
    )
    assert done.returncode == 0, done.stderr
    return dump(file), done.stdout, json.loads(done.stderr)


def payloads(rows: list[Row], channel: str) -> list[str]:
    return [row.payload for row in rows if row.channel == channel]


def test_payloads_and_handlers(compiled: Compiled, tmp_path: Path) -> None:
    rows, _, totals = logged(compiled, tmp_path, "payloads")
    edge = 1 << 45
    numbers = [0, -1, edge - 1, -edge, edge, 2**63 - 1, -(2**63), 43]
    assert payloads(rows, "numbers") == [str(number) for number in numbers]
    assert payloads(rows, 'texts, "quoted"') == ["hello, world", "", "x" * 4096]
    assert payloads(rows, "tenth") == [str(number) for number in range(0, 100, 10)]
    assert payloads(rows, "some") == [str(number) for number in range(100) if number % 8 < 3]
    assert not payloads(rows, "never")
    assert totals["events"] == len(rows)
    assert [row.ticks for row in rows] == sorted(row.ticks for row in rows)


def test_channels_that_were_never_opened_cost_others_nothing(
    compiled: Compiled, tmp_path: Path
) -> None:
    count = 300_000
    rows, _, totals = logged(compiled, tmp_path, "unopened", count)
    assert (totals["events"], totals["lost"]) == (count, 0)
    assert [row.channel for row in rows] == ["numbers"] * count
    assert payloads(rows, "numbers") == [str(number) for number in range(count)]


def test_children_of_a_fork(compiled: Compiled, tmp_path: Path) -> None:
    rows, _, totals = logged(compiled, tmp_path, "forking")
    by_process: dict[int, list[str]] = {}
    for row in sorted(rows, key=lambda row: row.ticks):
        assert row.tid == row.pid
        by_process.setdefault(row.pid, []).append(f"{row.channel} {row.payload}")
    first, *children = by_process.values()
    assert first == ["family 1", "family 5"]
    assert sorted(children) == [["family 2"], ["family 3", "another 4"]]
    assert totals["programs"] == 3


def test_a_program_that_closes_all_finds_its_own_files_untouched(
    compiled: Compiled, tmp_path: Path
) -> None:
    """Also where they have got the number that the segment had."""
    own, count = tmp_path / "own", 100
    rows, _, totals = logged(compiled, tmp_path, "closing", own, count)
    assert own.stat().st_blocks == 0
    # The thread has found no ring; the child has made a segment of its own.
    expected = [
        str(number) for part in (0, 2, 2) for number in range(part * count, (part + 1) * count)
    ]
    assert sorted(payloads(rows, "closing")) == sorted(expected)
    assert (totals["programs"], totals["unserved"]) == (2, count)


def test_a_program_that_becomes_another_leaves_no_memory_behind(
    compiled: Compiled, tmp_path: Path
) -> None:
    file = tmp_path / "events.log"
    command = [TARE_LOG, "run", "--out", file, "--", compiled("replaced"), 100, "sleep", "600"]
    running = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, text=True)
    assert running.stdin is not None
    try:
        maps = Path(f"/proc/{running.pid}/maps")
        wait_for(lambda: "memfd:tare-log" in maps.read_text())
        running.stdin.write("\n")
        running.stdin.close()
        wait_for(lambda: "memfd:tare-log" not in maps.read_text())
        assert payloads(dump(file), "replaced") == [str(number) for number in range(100)]
        assert running.poll() is None
    finally:
        running.send_signal(signal.SIGINT)
        running.wait(SECONDS)


REPLACED = """
import os, sys
from tare.log import Channel
channel = Channel("numbers", handler="first-last")
for number in range(10):
    channel.log(number)
if os.fork() == 0:
    sys.stdin.read()
else:
    os.execvp("cat", ["cat"])
"""


def test_a_program_that_becomes_another_while_a_child_goes_on(tmp_path: Path) -> None:
    """The child, which logs nothing, holds the connection of its parent."""
    file = tmp_path / "events.log"
    command = [TARE_LOG, "run", "--out", str(file), "--", sys.executable, "-c", REPLACED]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as running:
        wait_for(lambda: file.stat().st_size > 0 and ends(file) == ["ended"])
        assert payloads(dump(file), "numbers") == ["0", "9"]
        assert running.poll() is None


def test_a_signal_handler_interrupts_its_own_thread(compiled: Compiled, tmp_path: Path) -> None:
    rows, out, _ = logged(compiled, tmp_path, "interrupted", 100_000, 100)
    outside, inside = map(int, out.split())
    assert payloads(rows, "outside") == [str(number) for number in range(1, outside + 1)]
    of_handler = sorted(int(number) for number in payloads(rows, "inside"))
    assert of_handler == list(range(1, inside + 1))


@pytest.mark.exhaustive
@pytest.mark.skipif(memory()["MemAvailable"] < 4 << 20, reason="less than 4 GiB are free")
@pytest.mark.parametrize(("wanted", "bytes_"), [("1", 1 << 16), ("1G", 1 << 30), ("9G", 1 << 30)])
def test_rings_of_all_sizes(wanted: str, bytes_: int, compiled: Compiled, tmp_path: Path) -> None:
    """The ring of the one thread is mapped whole, with its head."""
    variables = os.environ | {"TARE_LOG_RING": wanted, "TARE_LOG": str(tmp_path / "nobody")}
    command = [compiled("vector")]
    with subprocess.Popen(
        command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        maps = Path(f"/proc/{program.pid}/maps").read_text().splitlines()
        program.communicate(b"\n")
    ends = [line.split()[0].split("-") for line in maps if "memfd:tare-log" in line]
    assert bytes_ + 4096 in [int(end, 16) - int(begin, 16) for begin, end in ends]


@pytest.mark.skipif(not may_make_namespaces(), reason="namespaces cannot be made")
def test_a_thread_with_the_number_of_one_that_ended(compiled: Compiled, tmp_path: Path) -> None:
    """In a namespace of its own, where it is the program that says which number comes next."""
    file = tmp_path / "events.log"
    alone = ["unshare", "--pid", "--fork", "--mount-proc"]
    command = [*alone, TARE_LOG, "run", "--out", file, "--", compiled("namesake")]
    subprocess.run([str(word) for word in command], check=True, timeout=SECONDS)
    *firsts, second = [(row.thread, row.payload) for row in dump(file)]
    assert second == ("second", "2")
    # One more wherever a thread of the collector has the number.
    assert {*firsts} == {("first", "1")}


def test_short_threads_share_rings(compiled: Compiled, tmp_path: Path) -> None:
    threads = 20_000
    rows, _, totals = logged(compiled, tmp_path, "churning", threads, TARE_LOG_RING="64K")
    assert sorted(int(row.payload) for row in rows) == list(range(threads))
    assert all(row.thread == "churning" and row.tid != row.pid for row in rows)
    assert (totals["lost"], totals["unserved"]) == (0, 0)


@pytest.mark.parametrize(("limit_mb", "kept"), [(200, 10), (10, 0)])
def test_a_limit_of_file_sizes_makes_rings_smaller_or_is_told(
    compiled: Compiled, tmp_path: Path, limit_mb: int, kept: int
) -> None:
    """The segment is larger than the limit, and the program must not be ended for it."""
    file = tmp_path / "events.log"
    program = f"ulimit -f {limit_mb * 1024} && exec {compiled('speed')} 10 1 wait"
    command = [TARE_LOG, "run", "--out", str(file), "--", "bash", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert len(dump(file)) == kept
    assert ("ulimit -f" in done.stderr) == (not kept)


@pytest.mark.parametrize("policy", ["drop", "overwrite"])
def test_losses_are_counted_exactly(compiled: Compiled, tmp_path: Path, policy: str) -> None:
    events, bursts = 20_000, 20
    words = (events, bursts, policy)
    rows, _, totals = logged(compiled, tmp_path, "speed", *words, TARE_LOG_RING="64K")
    kept = [int(row.payload) for row in rows if row.channel]
    lost = sum(row.lost for row in rows)
    assert kept == sorted(set(kept))
    assert len(kept) + lost == events * bursts
    assert (totals["events"], totals["lost"]) == (len(kept), lost)
    assert lost > 0
    # What was logged last is lost where new events are, and there where old ones are.
    assert (kept[-1] == events * bursts - 1) or policy == "drop"


@pytest.mark.parametrize("options", [(), ("--codec", "lz4", "--workers", "3")])
def test_channels_have_their_own_codecs(
    compiled: Compiled, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """They are compressed apart, and read again in the order in which they were logged."""
    events = 300_000
    rows, _, totals = logged(compiled, tmp_path, "codecs", events, options=options)
    expected = [("seven" if n % 100 == 7 else str(n * n), f"codec {n % 5}") for n in range(events)]
    assert [(row.payload, row.channel) for row in rows] == expected
    assert totals["events"] == events
    found = codecs_of((tmp_path / "events.log").read_bytes())
    parts = [codecs for codecs in found if len(codecs) > 1]
    usual = 3 if options else 2
    assert parts
    assert all(codecs[0] == usual and sorted(codecs[1:]) == [1, 2, 3, 4] for codecs in parts)


def codecs_of(file: bytes) -> Iterator[list[int]]:
    """By block of events, its codec, or those of its parts (docs/formats/log.md)."""
    place = 0
    while place < len(file):
        magic, codec, stored, events = struct.unpack_from("<4s6xHI32xI", file, place)
        assert magic == b"TLBK"
        content = place + 96
        # A block may have marks alone.
        if events and codec:
            yield [codec]
        elif events:
            (count,) = struct.unpack_from("<I", file, content)
            yield [struct.unpack_from("<I", file, content + 4 + 12 * n)[0] for n in range(count)]
        place = content + stored


def test_a_ring_has_its_memory_before_it_is_written(tmp_path: Path) -> None:
    """No event waits for the kernel to find a page."""
    script = """
import resource
from tare.log import Channel
channel = Channel("events")
channel.log(0)
def faults():
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
before = faults()
for number in range(200_000):
    channel.log(number)
print(faults() - before)
"""
    file = str(tmp_path / "e.log")
    command = [TARE_LOG, "run", "--out", file, "--", sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    # The ring has a thousand pages.
    assert int(done.stdout) < 100
