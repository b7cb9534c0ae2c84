# SPDX-License-Identifier: Apache-2.0
"""Where the times of events come from: each clock against the kernel's, in every language."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.log.conftest import TARE_LOG, Row, dump, events, ran
from tests.log.languages import command
from tests.log.test_java import logged
from tests.rights import may_make_namespaces
from tests.waiting import wait_for

CLOCKS = ["tsc", "tscp", "monotonic"]
LISTED = "/sys/devices/system/clocksource/clocksource0/available_clocksource"


def clocks(file: Path) -> list[str]:
    """What `tare log stats` says that times were read from."""
    told = subprocess.run([TARE_LOG, "stats", file, "--json"], check=True, capture_output=True)
    found: list[str] = json.loads(told.stdout)["clocks"]
    return found


def test_the_times_of_a_program(compiled: Callable[[str], Path], tmp_path: Path) -> None:
    """One file, three programs, each with a clock of its own."""
    file = tmp_path / "events.log"
    for clock in CLOCKS:
        ran(file, compiled("timed"), 500, 100, TARE_LOG_CLOCK=clock)
    assert clocks(file) == sorted(CLOCKS)
    rows = dump(file)
    by_program: dict[int, list[Row]] = {}
    for row in rows:
        by_program.setdefault(row.pid, []).append(row)
    assert len(by_program) == len(CLOCKS)
    for its in by_program.values():
        are_near(its)


def are_near(rows: list[Row]) -> None:
    """Each event comes after the time that it tells, some at once."""
    assert rows
    late = [row.time_ns - int(row.payload) for row in rows]
    assert -5_000 < min(late) < 50_000


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("language", ["C", "C++", "Rust", "Python"])
def test_every_language_reads_the_clock(language: str, clock: str, tmp_path: Path) -> None:
    file = tmp_path / "events.log"
    run = [TARE_LOG, "run", "--clock", clock, "--out", str(file), "--"]
    program = command(language, "vector")
    between(file, clock, lambda: subprocess.run([*run, *program], check=True, input=b""))


@pytest.mark.parametrize("clock", CLOCKS)
def test_java_reads_the_clock(java: list[str], clock: str, tmp_path: Path) -> None:
    file = tmp_path / "events.log"
    between(file, clock, lambda: logged(java, tmp_path, "payloads", TARE_LOG_CLOCK=clock))
    run = [TARE_LOG, "run", "--clock", clock, "--out", str(tmp_path / "other.log"), "--"]
    diagnosis = [*run, *java, "tare.log.Diagnosis"]
    said = subprocess.run(diagnosis, check=True, capture_output=True, text=True).stdout
    (line,) = [line for line in said.splitlines() if line.startswith("clock: ")]
    beginning = {
        "tsc": "ticks, read by",
        "tscp": "ticks in program order",
        "monotonic": "CLOCK_MONOTONIC_RAW",
    }
    assert line.removeprefix("clock: ").startswith(beginning[clock])


def between(file: Path, clock: str, run: Callable[[], object]) -> None:
    """Times lie between those before and after the run; ticks do where they are nanoseconds."""
    system, raw = time.CLOCK_REALTIME, time.CLOCK_MONOTONIC_RAW
    begin = [time.clock_gettime_ns(which) for which in (system, raw)]
    run()
    end = [time.clock_gettime_ns(which) for which in (system, raw)]
    assert clocks(file) == [clock]
    rows = dump(file)
    assert rows
    times = [row.time_ns for row in rows]
    assert begin[0] <= min(times) <= max(times) <= end[0]
    ticks = [row.ticks for row in rows]
    assert (begin[1] <= min(ticks) <= max(ticks) <= end[1]) is (clock == "monotonic")


@pytest.mark.parametrize("handler", ["periodic-counter", "fast-periodic-counter"])
@pytest.mark.parametrize("clock", CLOCKS)
def test_periods_by_the_clock(
    clock: str, handler: str, compiled: Callable[[str], Path], tmp_path: Path
) -> None:
    """Counters of 20 ms, of a program that logs for some 200."""
    file, rules = tmp_path / "events.log", tmp_path / "rules.toml"
    rules.write_text(f'[[rule]]\nhandler = "{handler}"\nperiod = "20ms"\n')
    run = [TARE_LOG, "run", "--clock", clock, "--rules", str(rules), "--out", str(file), "--"]
    began = time.time_ns()
    subprocess.run([*run, str(compiled("timed")), "2000", "100"], check=True)
    ended = time.time_ns()
    rows = dump(file)
    counts = [int(row.payload) for row in rows]
    assert counts == sorted(counts)
    assert counts[-1] == 2000
    times = np.array([row.time_ns for row in rows])
    assert began < times[0] <= times[-1] < ended
    # The last comes with the program's end; the collector is late by what it likes.
    between_them = np.diff(times)[:-1]
    assert len(between_them) >= 3
    if handler == "periodic-counter":
        assert between_them.min() > 19_000_000
    assert np.median(between_them) > 15_000_000


@pytest.mark.skipif(not may_make_namespaces(), reason="no namespaces may be made here")
def test_without_a_counter_to_rely_on(compiled: Callable[[str], Path], tmp_path: Path) -> None:
    """The kernel has taken it off its list, as it does when it runs unevenly."""
    file, kernels = tmp_path / "events.log", tmp_path / "list"
    kernels.write_text("hpet acpi_pm \n")
    timed = f"{compiled('timed')} 200 100"
    script = f"mount --bind {kernels} {LISTED} && exec {TARE_LOG} run --out {file} -- "
    script += f"sh -c '{timed}; {timed}'"
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], check=True, capture_output=True, text=True
    )
    end = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    (line,) = done.stderr.splitlines()
    assert "no reliable tick counter" in line
    assert clocks(file) == ["fallback"]
    rows = dump(file)
    assert begin < rows[0].ticks < rows[-1].ticks < end
    are_near(rows)
    told = subprocess.run([TARE_LOG, "stats", file], check=True, capture_output=True, text=True)
    assert "no reliable tick counter" in told.stdout


@pytest.mark.skipif(not may_make_namespaces(), reason="no namespaces may be made here")
@pytest.mark.parametrize("clock", ["tsc", "monotonic"])
def test_a_program_in_another_time_namespace(
    clock: str, compiled: Callable[[str], Path], tmp_path: Path
) -> None:
    """Its monotonic clock is ahead by a day."""
    file = tmp_path / "events.log"
    ahead = ["unshare", "--time", "--fork", "--monotonic", "86400"]
    run = [TARE_LOG, "run", "--clock", clock, "--out", str(file), "--"]
    subprocess.run([*run, *ahead, str(compiled("timed")), "500", "100"], check=True)
    are_near(dump(file))


@pytest.mark.parametrize("milliseconds", [60, 150, 400])
def test_a_collector_killed_in_its_first_second(
    milliseconds: int, compiled: Callable[[str], Path], tmp_path: Path
) -> None:
    file, socket = tmp_path / "events.log", tmp_path / "socket"
    program = [str(compiled("timed")), "0", "100"]
    with subprocess.Popen(
        [TARE_LOG, "collect", "--socket", str(socket), "--out", str(file)]
    ) as collector:
        wait_for(socket.exists)
        with subprocess.Popen(program, env={"TARE_LOG": str(socket)}) as timed:
            time.sleep(milliseconds / 1e3)
            wait_for(lambda: len(events(file)) > 0)
            collector.kill()
            collector.wait()
            timed.kill()
    are_near(dump(file))
    out = tmp_path / "out.json"
    subprocess.run([TARE_LOG, "export", file, "--to", "chrome", "--out", out], check=True)
    assert len(json.loads(out.read_text())["traceEvents"]) > len(dump(file))


def test_readings_come_early_and_then_each_second(tmp_path: Path) -> None:
    """A block of 144 bytes each, of which the first three seconds have eleven doublings."""
    file = tmp_path / "events.log"
    subprocess.run([TARE_LOG, "run", "--out", file, "--", "sleep", "3.2"], check=True)
    readings = file.read_bytes().count(b"TLBK")
    # At 0, 1, 3, 7 ... 1023 ms, then at 2.02 and 3.02 s, and the last; fewer where it was late.
    assert 5 <= readings <= 15
