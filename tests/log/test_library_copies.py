# SPDX-License-Identifier: Apache-2.0
"""Several copies of the library in one process: each has a segment, the file has all events."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.log.conftest import TARE_LOG, dump, served
from tests.log.languages import INCLUDE, LIBRARIES, PROGRAMS, STRICT, needs
from tests.once import OUT, compiled
from tests.waiting import SECONDS, wait_for

COPIES, EVENTS = 3, 1_000
# Python has one that is written in Rust; one plugin brings its own, one uses the shared one.
PROGRAM = f"""
import ctypes, os, sys
from threading import Thread
from tare.log import Channel
logs = [Channel("numbers").log]
logs += [ctypes.PyDLL(path).log_from_here for path in sys.argv[1:]]
def work(first):
    for number in range(first, first + {EVENTS}):
        for log in logs: log(number)
work(0)
thread = Thread(target=work, args=({EVENTS},))
thread.start()
thread.join()
child = os.fork()
if child == 0:
    work({2 * EVENTS})
    os._exit(0)
os.waitpid(child, 0)
print("done", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def plugins() -> list[str]:
    needs("cc")
    flags = ["cc", "-std=c11", *STRICT, "-fPIC", "-shared", f"-I{INCLUDE}"]
    made = []
    for name, libraries in (
        ("static", [f"{LIBRARIES}/libtare_log.a"]),
        ("shared", [f"-L{LIBRARIES}", "-ltare_log", f"-Wl,-rpath,{LIBRARIES}"]),
    ):
        words = [*flags, PROGRAMS / "plugin.c", *libraries, "-o", OUT]
        made.append(str(compiled(f"{name}.so", *words)))
    return made


def check(file: Path) -> None:
    counted = Counter((row.pid, row.tid, int(row.payload)) for row in dump(file))
    processes = {pid for pid, _, _ in counted}
    assert len(processes) == 2
    assert set(counted.values()) == {COPIES}
    assert sorted(number for _, _, number in counted) == list(range(3 * EVENTS))


def test_events_of_all_copies(plugins: list[str], tmp_path: Path) -> None:
    file = tmp_path / "events.log"
    program = [sys.executable, "-c", PROGRAM, *plugins]
    done = subprocess.run(
        [TARE_LOG, "run", "--out", file, "--json", "--", *program],
        input=b"",
        capture_output=True,
        check=True,
    )
    check(file)
    # A segment is what a collector counts as a program; the child has as many.
    assert json.loads(done.stderr)["programs"] == 2 * COPIES


def test_a_collector_that_comes_later_finds_them(plugins: list[str], tmp_path: Path) -> None:
    file, socket = tmp_path / "events.log", tmp_path / "socket"
    program = PROGRAM.replace("os._exit(0)", "sys.stdin.read(); os._exit(0)")
    # The pipe ends for the parent when the child has logged all that it will.
    program = program.replace("os.waitpid(child, 0)", "os.close(ready[1]); os.read(ready[0], 1)")
    program = program.replace("child = os.fork()", "ready = os.pipe(); child = os.fork()")
    program = program.replace(
        "sys.stdin.read(); os._exit", "os.close(ready[1]); sys.stdin.read(); os._exit"
    )
    environment = os.environ | {"TARE_LOG": str(socket)}
    with subprocess.Popen(
        [sys.executable, "-c", program, *plugins],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"done\n"
        collect = [TARE_LOG, "collect", "--socket", str(socket), "--out", str(file)]
        with subprocess.Popen(collect) as collector:
            try:
                wait_for(lambda: len(served(collector.pid)) == 2 * COPIES)
            finally:
                collector.send_signal(signal.SIGINT)
            assert collector.wait(SECONDS) == 0
        process.communicate(b"")
    check(file)


def test_a_plugin_that_comes_and_goes(plugins: list[str], tmp_path: Path) -> None:
    """The shared library stays when the plugin is unloaded: one segment serves all its lives."""
    lives, file = 100, tmp_path / "events.log"
    program = f"""
import _ctypes, ctypes, os
from pathlib import Path
name = os.path.basename({plugins[1]!r})
for number in range({lives}):
    plugin = ctypes.PyDLL({plugins[1]!r})
    plugin.log_from_here(number)
    _ctypes.dlclose(plugin._handle)
    assert name not in Path("/proc/self/maps").read_text()
    if number == 0: before = len(os.listdir("/proc/self/fd"))
assert len(os.listdir("/proc/self/fd")) == before
"""
    run = [TARE_LOG, "run", "--out", str(file), "--json", "--", sys.executable, "-c", program]
    done = subprocess.run(run, check=True, capture_output=True)
    assert [int(row.payload) for row in dump(file)] == list(range(lives))
    assert json.loads(done.stderr)["programs"] == 1
