# SPDX-License-Identifier: Apache-2.0
"""Programs that limit their memory run as without Tare if they have some to spare: 16 MiB, or
100 MiB beside the hook of a program with several threads."""

import subprocess
from pathlib import Path

import pytest
from tests.hook.hooked import hooked, plain, rules
from tests.hostile.conftest import Compile
from tests.link import linked
from tests.log.conftest import ran

from tare.native import native

WAYS = ["setrlimit", "prlimit", "syscall", "mlockall"]
ways = pytest.mark.parametrize("how", WAYS)


@pytest.fixture
def logging(restricted: Compile) -> Path:
    folder = Path(native("lib", "libtare_log.so")).parent
    include = f"-I{Path(native('include', 'tare_log.h')).parent}"
    library = [include, f"-L{folder}", "-ltare_log", f"-Wl,-rpath,{folder}"]
    return restricted("limited", "-DSPARE=16", *library)


def may_lock(how: str, program: str | Path) -> None:
    if how == "mlockall" and subprocess.run([program, how, "0", "0"], check=False).returncode == 4:
        pytest.skip("this user may not lock its memory")


@ways
def test_logging_program_gets_its_memory_and_goes_on_logging(
    how: str, logging: Path, tmp_path: Path
) -> None:
    may_lock(how, logging)
    totals = ran(tmp_path / "events.log", logging, how, 0, 10_000)
    assert (totals["events"], totals["lost"], totals["unserved"]) == (10_001, 0, 0)


@pytest.mark.parametrize(("threads", "spare"), [(0, 16), (3, 100)])
@ways
def test_hooked_program_gets_its_memory_and_its_reads_are_searched(
    how: str, threads: int, spare: int, restricted: Compile, tmp_path: Path
) -> None:
    program = restricted("limited", "-DHOOKED", f"-DSPARE={spare}")
    command: list[str | Path] = [program, how, str(threads), "100"]
    may_lock(how, program)
    assert plain(command, tmp_path).code == 0
    seen = hooked(command, tmp_path, rules("needle", scope="all"))
    assert (seen.behaviour.code, seen.stats["events"]["lost"]) == (0, 0)
    assert len(seen.keywords("in")) == threads + 101


@pytest.mark.parametrize(
    ("how", "printed"),
    [("clone", "8, child 0"), ("forked", "-1, child 700")],
)
def test_process_that_shares_memory_limits_only_itself(
    how: str, printed: str, restricted: Compile, tmp_path: Path
) -> None:
    command: list[str | Path] = [restricted("clone_vm"), how]
    expected = plain(command, tmp_path)
    assert (expected.code, expected.out) == (0, f"{printed}\n")
    assert hooked(command, tmp_path, rules("needle", scope="all")).behaviour == expected


def test_threads_keep_their_rings_however_many_they_are(logging: Path, tmp_path: Path) -> None:
    file = tmp_path / "events.log"
    totals = ran(file, logging, "syscall", 30, 1_000, TARE_LOG_RING="64K")
    assert (totals["events"], totals["lost"], totals["unserved"]) == (1_031, 0, 0)


def test_limit_set_before_leaves_the_program_its_memory(logging: Path, tmp_path: Path) -> None:
    """Of the 100 MiB that it has, 64 are the program's, which needs fewer than 20 besides."""
    limited = ["-c", 'ulimit -v 102400; exec "$@"', "limited", logging, "before", 3, 1_000]
    totals = ran(tmp_path / "events.log", Path("/bin/sh"), *limited)
    assert totals["events"] + totals["unserved"] == 1_004
    assert totals["events"] >= 1_001


def test_memory_that_is_locked_first_is_not_filled(
    logging_program: Compile, tmp_path: Path
) -> None:
    """Only the rings of both threads are locked, not the 128 MiB for 1,024 threads."""
    program = logging_program("locked")
    if subprocess.run([program, "0"], check=False).returncode == 4:
        pytest.skip("this user may not lock its memory")
    totals = ran(tmp_path / "events.log", program, 1_000)
    assert (totals["events"], totals["lost"], totals["unserved"]) == (2_000, 0, 0)


def test_linked_program_gets_its_memory(restricted: Compile, tmp_path: Path) -> None:
    """Its links, of 132 KiB per end, are 77 MiB without a limit."""
    command = [str(restricted("roomy")), "300"]
    assert plain(list(command), tmp_path).code == 0
    run = linked.run(*command)
    assert (run.code, run.errors) == (0, "")
    assert run.counts["refused"] > 0
