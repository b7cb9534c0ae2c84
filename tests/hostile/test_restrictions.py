# SPDX-License-Identifier: Apache-2.0
"""Programs that forbid themselves system calls or the tick counter run as without Tare."""

import platform
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.hook.hooked import hooked, plain, rules
from tests.hostile.conftest import Compile
from tests.link import linked
from tests.log.conftest import dump, events, ran

from tare.native import native

WAYS = [
    ("strict", "prctl"),
    *((profile, "prctl") for profile in ("events", "datagrams", "untrusted")),
    ("events", "seccomp"),
    ("events", "threads"),
    ("counter", "prctl"),
    ("both", "prctl"),
    ("dispatch", "prctl"),
]
SECCOMP = {"x86_64": 317}.get(platform.machine(), 277)
"""Number of the system call."""

ways = pytest.mark.parametrize(("restriction", "how"), WAYS)


@pytest.fixture(params=["shared", "static"])
def logging(request: pytest.FixtureRequest, restricted: Compile) -> Path:
    """The program that logs, linked with the shared and with the static library."""
    folder = Path(native("lib", "libtare_log.a")).parent
    include = f"-I{Path(native('include', 'tare_log.h')).parent}"
    if request.param == "static":
        return restricted("logging", include, folder / "libtare_log.a")
    return restricted("logging", include, f"-L{folder}", "-ltare_log", f"-Wl,-rpath,{folder}")


@ways
def test_hooked_program_is_not_killed_and_its_reads_are_searched(
    restriction: str, how: str, restricted: Compile, tmp_path: Path
) -> None:
    command: list[str | Path] = [restricted("serving"), restriction, how]
    expected = plain(command, tmp_path)
    assert expected.code == 0
    begin = time.time_ns()
    seen = hooked(command, tmp_path, rules("needle", scope="all"))
    assert seen.behaviour == expected
    assert seen.keywords("in") == [("needle", 4), ("needle", 20), ("needle", 27)]
    assert seen.stats["events"]["lost"] == 0
    assert all(begin <= event["time_ns"] <= time.time_ns() for event in seen.events)


@ways
def test_linked_program_is_not_killed_and_goes_on_by_tcp(
    restriction: str, how: str, restricted: Compile, tmp_path: Path
) -> None:
    command = [str(restricted("linked")), restriction, how]
    expected = plain(list(command), tmp_path)
    assert (expected.code, expected.out.count("8 0\n")) == (0, 16)
    run = linked.run(*command)
    assert (run.code, run.output, run.errors) == (0, expected.out, "")
    assert run.counts["links"] == 2
    assert (run.counts["reset"], run.counts["unserved"]) == (0, 0)


@pytest.mark.parametrize("how", ["exit", "_exit", "syscall"])
def test_linked_program_without_the_tick_counter_forks_and_ends(
    how: str, restricted: Compile, tmp_path: Path
) -> None:
    command = [str(restricted("uncounted")), how]
    assert plain(list(command), tmp_path).code == 0
    run = linked.run(*command)
    assert (run.code, run.errors, run.counts["links"]) == (0, "", 2)


def test_asking_for_filters_leaves_links_alone() -> None:
    """Programs find out in this way what the kernel supports."""
    script = f"""{linked.PAIR}
import ctypes
near, far = linked()
libc = ctypes.CDLL(None)
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, SYS_seccomp, SECCOMP_SET_MODE_FILTER = 22, 2, {SECCOMP}, 1
assert libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, None, 0, 0) == -1
assert libc.syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, None) == -1
near.sendall(b"by the ring" * 1000)
assert far.recv(11_000, socket.MSG_WAITALL) == b"by the ring" * 1000
"""
    run = linked.run("/usr/bin/python3", "-c", script)
    assert (run.code, run.errors) == (0, "")
    assert run.counts["ring_bytes_sent"] > 11_000


def test_block_rule_withholds_bytes_in_strict_mode(restricted: Compile, tmp_path: Path) -> None:
    command: list[str | Path] = [restricted("serving"), "strict", "prctl"]
    seen = hooked(command, tmp_path, rules("secret", scope="all", action="block"))
    assert seen.behaviour.out == "10 0\n-1 104\n"
    assert seen.behaviour.code == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize(("restriction", "how"), [*WAYS, ("events", "early"), ("counter", "early")])
def test_logging_program_is_not_killed_and_every_event_is_counted(
    restriction: str, how: str, logging: Path, tmp_path: Path
) -> None:
    count, threads = 300_000, 3 if how == "threads" else 0
    file = tmp_path / "events.log"
    begin = time.time_ns()
    totals = ran(file, logging, restriction, how, count, threads)
    assert totals["events"] + totals["lost"] + totals["unserved"] == count + 2 * threads
    rows = events(file, payload=pa.string())
    rows = rows.filter(pc.is_null(rows["lost"]))
    texts = rows.filter(pc.equal(rows["channel"], "texts"))
    assert len(texts) == 2 * threads
    rows = rows.filter(pc.equal(rows["channel"], "numbers"))
    numbers = rows["payload"].cast(pa.int64()).to_numpy()
    assert len(numbers) > 1_000
    assert (np.diff(numbers) > 0).all()
    times = rows["time_ns"].to_numpy()
    assert (np.diff(times) >= 0).all()
    assert begin <= times[0]
    assert times[-1] <= time.time_ns()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="others have no such prctl")
def test_program_that_starts_without_the_tick_counter_logs_with_times_of_the_kernel(
    restricted: Compile, tmp_path: Path
) -> None:
    """The dynamic linker reads the counter, so only a program without one starts at all."""
    library = Path(native("lib", "libtare_log.a"))
    include = f"-I{Path(native('include', 'tare_log.h')).parent}"
    program = restricted("logging", "-static", include, library)
    file, count = tmp_path / "events.log", 10_000
    begin = time.time_ns()
    totals = ran(file, restricted("untimed"), program, "none", "prctl", count, 0)
    assert (totals["events"] + totals["unserved"], totals["lost"]) == (count, 0)
    times = [row.time_ns for row in dump(file)]
    assert times == sorted(times)
    assert begin <= times[0] < times[-1] <= time.time_ns()


def test_child_of_vfork_takes_no_ring_of_its_parent(
    logging_program: Compile, tmp_path: Path
) -> None:
    program = logging_program("vforked")
    file, count = tmp_path / "events.log", 40_000
    totals = ran(file, program, count)
    assert (totals["lost"], totals["events"] + totals["unserved"]) == (0, 2 * count + 1)
    rows = [int(row.payload) for row in dump(file)]
    assert sorted(row for row in rows if row >= 0) == list(range(2 * count))


def test_small_rings_are_emptied_though_a_filter_forbids_to_wake_the_collector(
    logging: Path, tmp_path: Path
) -> None:
    file = tmp_path / "events.log"
    totals = ran(file, logging, "strict", "prctl", 3_000_000, 0, TARE_LOG_RING="256K")
    assert totals["events"] + totals["lost"] == 3_000_000
    # At one look each 50 ms there would be a ring of events each.
    assert totals["events"] > 50_000
