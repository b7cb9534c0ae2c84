# SPDX-License-Identifier: Apache-2.0
"""`tare.log`: threads, processes, spans, and what it refuses."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.log.conftest import TARE_LOG, Row, dump
from tests.waiting import SECONDS

from tare.native import native

EVENTS = 2_000


def logged(tmp_path: Path, program: str, **variables: str) -> tuple[list[Row], dict[str, int]]:
    """What the program logs, and what tare-log counts."""
    script, file = tmp_path / "program.py", tmp_path / "events.log"
    script.write_text(program, encoding="utf-8")
    run = [TARE_LOG, "run", "--out", str(file), "--json", "--", sys.executable, str(script)]
    done = subprocess.run(
        run,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        env=os.environ | variables,
    )
    assert done.returncode == 0, done.stderr
    return dump(file), json.loads(done.stderr.splitlines()[-1])


def refused(program: str) -> str:
    """What Python says."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    return done.stderr


def test_threads_have_rings_of_their_own(tmp_path: Path) -> None:
    rows, totals = logged(
        tmp_path,
        f"""
from threading import Barrier, Thread
from tare.log import Channel
numbers, together = Channel("numbers"), Barrier(8)
def work(first):
    together.wait()
    for number in range({EVENTS}):
        numbers.log(first + number)
threads = [Thread(target=work, args=(place * {EVENTS},)) for place in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""",
    )
    by_thread: dict[int, list[int]] = {}
    for row in rows:
        by_thread.setdefault(row.tid, []).append(int(row.payload))
    assert len(by_thread) == 8
    assert all(len(numbers) == EVENTS for numbers in by_thread.values())
    assert all(numbers == sorted(numbers) for numbers in by_thread.values())
    assert sorted(int(row.payload) for row in rows) == list(range(8 * EVENTS))
    assert totals["lost"] == 0


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_children_of_multiprocessing(start: str, tmp_path: Path) -> None:
    rows, totals = logged(
        tmp_path,
        f"""
import multiprocessing, os
from tare.log import Channel
numbers = Channel("numbers")
def work(first):
    for number in range({EVENTS}):
        numbers.log(first + number)
if __name__ == "__main__":
    numbers.log(-1)
    context = multiprocessing.get_context("{start}")
    children = [context.Process(target=work, args=(place * {EVENTS},)) for place in range(3)]
    for child in children: child.start()
    for child in children: child.join()
    numbers.log(-2)
""",
    )
    by_process: dict[int, list[int]] = {}
    for row in rows:
        by_process.setdefault(row.pid, []).append(int(row.payload))
    assert sorted(by_process.values()) == [
        [-1, -2],
        *(list(range(place * EVENTS, (place + 1) * EVENTS)) for place in range(3)),
    ]
    # The tracker of resources that `spawn` starts is a Python that logs nothing.
    assert totals["programs"] == 4


def test_spans_as_context_and_as_decorator(tmp_path: Path) -> None:
    rows, _ = logged(
        tmp_path,
        """
from tare.log import Span
work = Span("work", policy="wait")
with work.numbered(1), work.numbered(2):
    pass
@work
def divide(one, *, other):
    "Divides."
    return one / other
assert (divide(6, other=3), divide.__name__, divide.__doc__) == (2, "divide", "Divides.")
try:
    divide(1, other=0)
except ZeroDivisionError:
    pass
class Service:
    @work.numbered(3)
    def answer(self):
        return self
service = Service()
assert service.answer() is service
""",
    )
    assert [f"{row.channel}{row.payload}" for row in rows] == [
        *("work>1", "work>2", "work<2", "work<1"),
        *("work>0", "work<0", "work>0", "work<0"),
        *("work>3", "work<3"),
    ]


def test_a_full_ring_that_waits_lets_other_threads_run(tmp_path: Path) -> None:
    """While one thread waits for room, which nobody makes, another goes on and ends that."""
    rows, totals = logged(
        tmp_path,
        """
import os, signal, threading, time
from tare.log import Channel
numbers = Channel("numbers", policy="wait")
numbers.log(0)
collector = os.getppid()
os.kill(collector, signal.SIGSTOP)
ticking = []
def tick():
    while True:
        ticking.append(1)
        time.sleep(0.001)
def release():
    while len(ticking) < 300: time.sleep(0.001)
    os.kill(collector, signal.SIGCONT)
for work in (tick, release): threading.Thread(target=work, daemon=True).start()
for number in range(1, 20_000): numbers.log(number)
assert len(ticking) >= 300
""",
        TARE_LOG_RING="64K",
    )
    assert [int(row.payload) for row in rows] == list(range(20_000))
    assert totals["lost"] == 0


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("Channel('a').log(2**63)", "OverflowError: "),
        ("Channel('a').log('1')", "TypeError: 'str' object cannot"),
        ("Channel('a').bytes('text')", "TypeError|BufferError"),
        ("Channel('a', policy='fast')", 'ValueError: no policy "fast": .* drop, wait, overwrite'),
        ("Channel('a', codec='gzip')", 'ValueError: no codec "gzip": .* lzo1x'),
        ("Channel('a', handler='x')", 'ValueError: no handler "x": .*buffered'),
        ("import pickle; pickle.dumps(Channel('a'))", "TypeError: cannot pickle"),
        ("async def f(): pass\nSpan('a')(f)", "TypeError: f is a coroutine or a generator"),
        ("def f(): yield\nSpan('a')(f)", "TypeError: f is a coroutine or a generator"),
    ],
)
def test_what_cannot_be_is_said(program: str, message: str) -> None:
    assert re.search(
        f"^({message})", refused(f"from tare.log import Channel, Span\n{program}"), re.M
    )


def test_a_subinterpreter_is_refused() -> None:
    said = refused(
        """
import sys
if sys.version_info >= (3, 13):
    import _interpreters as interpreters
else:
    import _xxsubinterpreters as interpreters
import tare.log
other = interpreters.create()
raised = interpreters.run_string(other, "import tare.log")
if raised: raise RuntimeError(raised.msg)
"""
    )
    assert re.search("tare.log cannot be used here: .* subinterpreters", said)


def test_without_a_collector_events_are_discarded() -> None:
    program = "from tare.log import Channel\nfor n in range(10**5): Channel('a').log(n)"
    bare = {name: value for name, value in os.environ.items() if name != "TARE_LOG"}
    subprocess.run([sys.executable, "-c", program], check=True, env=bare)


def test_it_imports_nothing_else_of_tare() -> None:
    program = "import sys, tare.log; print(*sys.modules)"
    names = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    ours = {name for name in names if name.partition(".")[0] == "tare"}
    assert ours == {"tare", "tare.log", "tare.native"}
    heavy = {"numpy", "typing", "inspect", "asyncio", "threading", "dataclasses", "logging", "json"}
    assert not heavy & set(names)


def test_it_exports_its_entry_alone_and_is_stripped() -> None:
    extension = native("lib", "tare_log.abi3.so")
    names = subprocess.check_output(["nm", "--dynamic", "--defined-only", extension], text=True)
    assert [line.split()[-1] for line in names.splitlines()] == ["PyInit_tare_log"]
    sections = subprocess.check_output(["readelf", "--wide", "--sections", extension], text=True)
    assert ".dynsym" in sections
    assert ".symtab" not in sections
    assert ".debug" not in sections


def test_the_types_are_those_of_the_module() -> None:
    stubtest = Path(sys.executable).parent / "stubtest"
    subprocess.run([stubtest, "tare.log"], check=True)
