# SPDX-License-Identifier: Apache-2.0
"""gdb, strace, perf: a breakpoint in a read, every call and child traced, profiles."""

import re
import subprocess
from pathlib import Path

import pytest
from tests.hook.conftest import Compile
from tests.hook.hooked import hooked, plain, rules
from tests.hook.programs.ways import need

RULES = rules("a", "e", "0", scope="all", direction="both")
# Children, signals that arrive during a call, threads.
CASES = ["execs", "interrupted", "threads"]


def test_gdb_stops_in_a_read_and_goes_on(compile_case: Compile, tmp_path: Path) -> None:
    need("gdb")
    program = compile_case("partial")
    expected = plain([program], tmp_path)
    steps = ["break read", "run", "backtrace 2", "delete", "continue"]
    command = ["gdb", "-batch", "-nx", "-iex", "set breakpoint pending on"]
    command += [part for step in steps for part in ("-ex", step)]
    seen = hooked([*command, "--args", program], tmp_path, RULES)
    out = seen.behaviour.out
    assert "in read () from" in out
    assert re.search(r"^#0 .*libtare_hook\.so\n#1 .* in main \(\)", out, re.M), out
    assert "exited normally" in out
    assert [line for line in out.splitlines() if ", errno " in line] == [
        line for line in expected.out.splitlines() if ", errno " in line
    ]
    assert seen.events


@pytest.mark.exhaustive
@pytest.mark.parametrize("outside", [False, True], ids=["inside", "outside"])
@pytest.mark.parametrize("name", CASES)
def test_strace(name: str, outside: bool, compile_case: Compile, tmp_path: Path) -> None:
    need("strace")
    program, trace = compile_case(name), tmp_path / "trace"
    command = ["strace", "--follow-forks", "--decode-fds=socket", "--output", str(trace)]
    if subprocess.run([*command, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine lets nobody trace")
    expected = plain([program], tmp_path)
    if outside:
        seen = hooked([program], tmp_path, RULES, before=command)
    else:
        seen = hooked([*command, program], tmp_path, RULES)
    assert seen.behaviour == expected
    assert seen.events
    # The loader reads files, too, but no sockets.
    assert re.search(r"\b(recvfrom|read)\(\d+<(TCP|UNIX)", trace.read_text())


@pytest.mark.exhaustive
@pytest.mark.parametrize("outside", [False, True], ids=["inside", "outside"])
@pytest.mark.parametrize("what", ["stat", "record"])
@pytest.mark.parametrize("name", CASES)
def test_perf(name: str, what: str, outside: bool, compile_case: Compile, tmp_path: Path) -> None:
    need("perf")
    program, counts = compile_case(name), tmp_path / "counts"
    # Counted in software: virtual machines have no counters of the processor's.
    event = "task-clock" if what == "stat" else "cpu-clock"
    command = ["perf", what, "--event", event, "--output", str(counts)]
    command += ["--quiet"] if what == "record" else []
    if subprocess.run([*command, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine lets nobody count with perf")
    counts.unlink()
    expected = plain([program], tmp_path)
    before = [*command, "--"] if outside else []
    inside = [] if outside else [*command, "--"]
    seen = hooked([*inside, program], tmp_path, RULES, before=before)
    assert (seen.behaviour.code, seen.behaviour.out) == (expected.code, expected.out)
    assert seen.events
    assert counts.stat().st_size
