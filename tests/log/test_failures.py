# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around programs that log costs no event that is not counted."""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.log.conftest import TARE_LOG, dump, ends, events, served, stats
from tests.log.test_kills import THREADS, agree, committed
from tests.log.test_round_trips import free_port
from tests.rights import may_make_namespaces
from tests.waiting import SECONDS, wait_for

Compiled = Callable[[str], Path]
RING_EVENTS = (4 << 20) // 8
"""More than the ring of a thread holds, unless TARE_LOG_RING says another size."""
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]


@contextmanager
def started(*command: object, **options: object) -> Iterator[subprocess.Popen[str]]:
    words = [str(word) for word in command]
    process = subprocess.Popen(words, text=True, stderr=subprocess.PIPE, **options)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def collecting(
    folder: Path, name: str = "events.log", *before: str
) -> Iterator[subprocess.Popen[str]]:
    """A collector at FOLDER/socket."""
    socket = folder / "socket"
    command = [*before, TARE_LOG, "collect", "--socket", socket, "--out", folder / name]
    with started(*command) as collector:
        wait_for(lambda: socket.exists() and (folder / name).exists())
        yield collector


def ended(collector: subprocess.Popen[str]) -> str:
    """What a collector has said until its end."""
    collector.send_signal(signal.SIGINT)
    _, told = collector.communicate(timeout=SECONDS)
    assert collector.returncode == 0, told
    return told


@contextmanager
def counting(
    compiled: Compiled, folder: Path, page: str = "page", policy: str = "wait", *before: str
) -> Iterator[subprocess.Popen[str]]:
    """A program that logs without end, and has begun."""
    command = [*before, compiled("counting"), folder / page, THREADS, policy]
    variables = os.environ | {"TARE_LOG": str(folder / "socket")}
    with started(*command, env=variables) as program:
        wait_for(lambda: has_begun(folder / page))
        yield program


def has_begun(page: Path) -> bool:
    return page.exists() and page.stat().st_size > 0 and all(committed(page))


def test_two_collectors_never_write_to_one_file(compiled: Compiled, tmp_path: Path) -> None:
    with collecting(tmp_path) as first, counting(compiled, tmp_path) as program:
        command = [TARE_LOG, "run", "--out", str(tmp_path / "events.log"), "--", "true"]
        second = subprocess.run(command, capture_output=True, text=True, check=False)
        program.kill()
        program.wait()
        assert ended(first) == ""
    assert second.returncode == 2
    told = f"events.log: collector {first.pid} writes to it; give another file\n"
    assert second.stderr.endswith(told)
    agree(tmp_path / "events.log", tmp_path / "page")


def test_two_collectors_never_share_a_program(compiled: Compiled, tmp_path: Path) -> None:
    """The second comes to the same socket, whose name somebody has taken away."""
    with collecting(tmp_path) as first, counting(compiled, tmp_path) as program:
        (tmp_path / "socket").unlink()
        with collecting(tmp_path, "second.log") as second:
            time.sleep(0.1)
            program.kill()
            program.wait()
            ended(second)
        ended(first)
    agree(tmp_path / "events.log", tmp_path / "page")
    assert dump(tmp_path / "second.log") == []


def test_two_programs_under_one_collector(compiled: Compiled, tmp_path: Path) -> None:
    """With the same channels, which are each program's own."""
    with collecting(tmp_path) as collector, ExitStack() as stack:
        programs = [
            stack.enter_context(counting(compiled, tmp_path, f"page {number}"))
            for number in range(2)
        ]
        for program in programs:
            program.kill()
            program.wait()
        ended(collector)
    table = events(tmp_path / "events.log")
    for number, program in enumerate(programs):
        last = committed(tmp_path / f"page {number}")
        its = table.filter(pc.equal(table["pid"], program.pid))
        for place in range(THREADS):
            count = len(its.filter(pc.equal(its["channel"], f"thread {place}")))
            assert count - last[place] in (0, 1)
    assert set(table["pid"].to_pylist()) == {program.pid for program in programs}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that every user may write to."""
    if not may_make_namespaces() or shutil.which("setpriv") is None:
        pytest.skip("only root can become somebody else")
    with TemporaryDirectory(prefix="tare-users-") as name:
        Path(name).chmod(0o777)
        yield Path(name)


def copied(folder: Path, *programs: Path) -> None:
    """What root has made where nobody else may look."""
    for program in programs:
        shutil.copy(program, folder)


def test_root_serves_programs_of_others(compiled: Compiled, open_folder: Path) -> None:
    copied(open_folder, compiled("counting"))
    with collecting(open_folder) as collector:
        (open_folder / "socket").chmod(0o777)
        with counting(lambda name: open_folder / name, open_folder, "page", "wait", *NOBODY):
            time.sleep(0.1)
        ended(collector)
    agree(open_folder / "events.log", open_folder / "page")


def test_a_program_of_another_user_is_refused(compiled: Compiled, open_folder: Path) -> None:
    """Also root's, who may come to any socket; the program goes on."""
    copied(open_folder, Path(TARE_LOG), compiled("counting"))
    command = [*NOBODY, open_folder / "tare-log", "collect", "--socket", open_folder / "socket"]
    with started(*command, "--out", open_folder / "events.log") as collector:
        wait_for((open_folder / "socket").exists)
        with counting(compiled, open_folder, "page", "drop") as program:
            before = committed(open_folder / "page")
            wait_for(lambda: committed(open_folder / "page") > before)
            assert program.poll() is None
        told = ended(collector)
    refused = f"process {program.pid} of user 0 is refused: expected user 65534\n"
    assert told.startswith(f"tare-log: {refused}")
    assert dump(open_folder / "events.log") == []


def test_who_is_refused_is_not_listened_to(open_folder: Path) -> None:
    copied(open_folder, Path(TARE_LOG))
    command = [*NOBODY, open_folder / "tare-log", "collect", "--socket", open_folder / "socket"]
    with started(*command, "--out", open_folder / "events.log") as collector:
        wait_for((open_folder / "socket").exists)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(SECONDS)
            connection.connect(str(open_folder / "socket"))
            assert connection.recv(2) == b"\0", (
                "an answer: without one, a program would connect again"
            )
            assert connection.recv(1) == b""
        told = ended(collector)
    assert told == f"tare-log: process {os.getpid()} of user 0 is refused: expected user 65534\n"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[tuple[Path, list[str]]]:
    """A full file system, as it is seen from here; and what starts a program that sees it."""
    if not may_make_namespaces():
        pytest.skip("only root can mount something")
    place = tmp_path / "disk"
    place.mkdir()
    mount = f"mount -t tmpfs -o size=64m none {place} && head -c 67043328 /dev/zero >{place}/filler"
    keeper = ["unshare", "--mount", "sh", "-c", f"{mount} && echo ready && exec sleep 1000"]
    with subprocess.Popen(keeper, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            inside = ["nsenter", f"--mount=/proc/{process.pid}/ns/mnt", f"--wdns={place}"]
            yield Path(f"/proc/{process.pid}/root{place}"), inside
        finally:
            process.kill()


@pytest.mark.parametrize("policy", ["wait", "drop"])
def test_a_full_disk(
    policy: str, compiled: Compiled, small_disk: tuple[Path, list[str]], tmp_path: Path
) -> None:
    """Events stay where they are, or are counted; the file goes on when there is room."""
    disk, inside = small_disk
    out = disk / "events.log"
    command = [*inside, TARE_LOG, "collect", "--socket", tmp_path / "socket"]
    with started(*command, "--out", "events.log") as collector:
        wait_for((tmp_path / "socket").exists)
        with counting(compiled, tmp_path, "page", policy):
            assert collector.stderr is not None
            first = collector.stderr.readline()
            if policy == "wait":
                wait_for(lambda: stands_still(tmp_path / "page"))
            else:
                wait_for_events(tmp_path / "page", 2 * RING_EVENTS)
            # Blocks are there whole, as far as there was room.
            full = events(out)
            assert len(full) > 0
            (disk / "filler").unlink()
            second = collector.stderr.readline()
        told = ended(collector)
    assert first == (
        "tare-log: events.log: cannot be written: No space left on device; programs keep their"
        " events in memory while there is room\n"
    )
    assert second == "tare-log: events.log: can be written again\n"
    assert "damaged" not in told
    kept = tmp_path / "kept.log"
    shutil.copy(out, kept)
    assert (agree(kept, tmp_path / "page")[1] > 0) == (policy == "drop")


TRIPS = 3_000
ROUND_TRIPS = f"""
import random, sys, time
from tare.log import Channel
start, end = Channel("out"), Channel("in", policy="wait")
end.log(0)
sys.stdin.readline()
for _ in range({TRIPS}):
    end.log(random.getrandbits(45))
    time.sleep(0.0003)
sys.stdin.readline()
"""


def test_round_trips_at_a_full_disk(small_disk: tuple[Path, list[str]], tmp_path: Path) -> None:
    """Answers stay where they are as events do, at both ends."""
    disk, inside = small_disk
    out, rules = disk / "events.log", tmp_path / "rules"
    address = f"127.0.0.1:{free_port()}"
    rules.write_text(
        f"[[rule]]\nchannel = 'out'\nhandler = 'fox-start'\naddress = '{address}'\n"
        f"[[rule]]\nchannel = 'in'\nhandler = 'fox-end'\naddress = '{address}'\n"
    )
    command = [*inside, TARE_LOG, "collect", "--socket", tmp_path / "socket", "--rules", rules]
    program = [sys.executable, "-c", ROUND_TRIPS]
    variables = os.environ | {"TARE_LOG": str(tmp_path / "socket")}
    with started(*command, "--out", "events.log") as collector:
        wait_for((tmp_path / "socket").exists)
        with started(*program, env=variables, stdin=subprocess.PIPE) as asking:
            wait_for(lambda: out.stat().st_size and len(channel(out, "in rtt")) == 1)
            subprocess.run(
                ["dd", "if=/dev/zero", f"of={disk / 'more'}"], capture_output=True, check=False
            )
            assert asking.stdin is not None
            asking.stdin.write("\n")
            asking.stdin.flush()
            assert collector.stderr is not None
            assert "cannot be written" in collector.stderr.readline()
            time.sleep(1.5)
            (disk / "filler").unlink()
            assert "can be written again" in collector.stderr.readline()
            asking.communicate("\n", timeout=SECONDS)
        ended(collector)
    trips, lost = channel(out, "in rtt"), stats(out)["lost"]
    assert len(trips) + lost == TRIPS + 1
    # The one before the disk was full, and others: a collector that is held up misses some.
    assert len(trips) > 1
    assert len(channel(out, "out answered")) >= len(trips)


def channel(file: Path, name: str) -> pa.Table:
    table = events(file)
    return table.filter(pc.equal(table["channel"], name))


def wait_for_events(page: Path, count: int) -> None:
    """Until each thread has logged so many more."""
    before = committed(page)
    wait_for(lambda: all(b - a >= count for a, b in zip(before, committed(page), strict=True)))


def stands_still(page: Path) -> bool:
    before = committed(page)
    time.sleep(0.1)
    return committed(page) == before


@pytest.mark.exhaustive
def test_bursts_for_a_collector_that_is_held_up(compiled: Compiled, tmp_path: Path) -> None:
    """Its bell is rung again and again while it does not hear it."""
    with collecting(tmp_path) as collector:
        with counting(compiled, tmp_path, "page", "drop") as program:
            for turn in range(8):
                collector.send_signal(signal.SIGSTOP)
                # By turns: the ring is full when the collector goes on, and is not.
                wait_for_events(tmp_path / "page", 1 if turn % 2 else RING_EVENTS)
                program.send_signal(signal.SIGSTOP if turn % 2 else signal.SIGCONT)
                collector.send_signal(signal.SIGCONT)
                time.sleep(0.02)
                program.send_signal(signal.SIGCONT)
        ended(collector)
    assert agree(tmp_path / "events.log", tmp_path / "page")[1] > 0


@pytest.mark.parametrize("seed", range(6))
def test_a_collector_killed_in_its_first_moments(
    seed: int, compiled: Compiled, tmp_path: Path
) -> None:
    """Before it has let the program in, while it does, or just after."""
    chance = random.Random(seed)
    socket, out = tmp_path / "socket", tmp_path / "events.log"
    command = [TARE_LOG, "collect", "--socket", socket, "--out", out]
    with counting(compiled, tmp_path, "page", "drop") as program:
        for _ in range(4):
            with started(*command):
                time.sleep(chance.uniform(0, 0.03))
        with collecting(tmp_path) as last:
            wait_for(lambda: served(last.pid))
            program.kill()
            program.wait()
            ended(last)
    agree(out, tmp_path / "page")


NAMESPACES = {
    "pid": ["--pid", "--mount-proc"],
    # Start times count from another moment there.
    "time": ["--time", "--boottime", "100000"],
    # It cannot read its start time.
    "no-proc": ["--mount", "sh", "-c", 'umount --lazy /proc && exec "$@"', "sh"],
}


@pytest.mark.parametrize("kind", NAMESPACES)
def test_a_program_in_a_namespace_is_taken_over(
    kind: str, compiled: Compiled, tmp_path: Path
) -> None:
    """The PID and the start time by which it knows itself are others outside."""
    if not may_make_namespaces():
        pytest.skip("only root can make a namespace")
    page, out = tmp_path / "page", tmp_path / "events.log"
    inside = ["unshare", "--fork", "--kill-child", *NAMESPACES[kind]]
    with ExitStack() as stack:
        with collecting(tmp_path):
            stack.enter_context(counting(compiled, tmp_path, "page", "drop", *inside))
        with collecting(tmp_path) as second:
            wait_for(lambda: served(second.pid))
            stack.close()
            ended(second)
    agree(out, page)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_run_ends_the_program_and_the_file(
    number: signal.Signals, compiled: Compiled, tmp_path: Path
) -> None:
    page, out = tmp_path / "page", tmp_path / "events.log"
    variables = os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)}
    command = [TARE_LOG, "run", "--out", out, "--", compiled("counting"), page, THREADS]
    with started(*command, env=variables) as run:
        wait_for(lambda: has_begun(page))
        (child,) = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        run.send_signal(number)
        assert run.wait(SECONDS) == 128 + number
    assert not Path(f"/proc/{child}").exists()
    agree(out, page)
    assert ends(out) == ["ended"]
    folder = Path("/run") if os.geteuid() == 0 else tmp_path
    assert not (folder / "tare" / f"log-{run.pid}.sock").exists()
