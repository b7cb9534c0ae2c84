# SPDX-License-Identifier: Apache-2.0
"""What a call takes in bursts that fit a ring: in each language, beside what others use.

What logs has a CPU, collectors have the other one; threads that a peer has in its own process may
use both.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.cases import Case
from bench.log.build import build_program, build_with_cargo, has_header
from bench.log.collected import Collected
from bench.log.moobench_tables import share
from bench.turns import Turner, alternate, on_cpu

BURST = 20_000
BURSTS = {"fastrace": 10_000, "tracing": 2_000, "tare, id": 2_000}
"""Of those that keep no more, or write more slowly; `id` has no ring."""
PROGRAM_CPU, COLLECTOR_CPU = 0, 1
THREADS = 2
TICKS = "the tick counter alone"
LTTNG = ("lttng-sessiond", "lttng", "babeltrace2")
LINES = {"fastrace": b"call "}
"""What each event has once, unless it is the end of a line."""


def cases(folder: Path, turns: int) -> list[Case]:
    """A call of each language and of each peer, beside the tick counter; two threads beside one."""
    with ExitStack() as stack:
        calls = build_program(folder, "calls.c")
        alone = Turner([str(calls), "ticks"], {}, PROGRAM_CPU, stack)
        turners = {TICKS: alone}
        collected = {
            "tare, C": [str(calls), "tare"],
            "tare, id": [str(calls), "tare", "id"],
            "tare, C++": [str(build_program(folder, "calls.cpp"))],
            "tare, Rust": [str(build_with_cargo(folder)), "tare"],
            "tare, Python": [
                sys.executable,
                str(Path(__file__).parent / "calls" / "tare_python.py"),
            ],
        }
        files = {name: Collected(folder / f"{place}") for place, name in enumerate(collected)}
        for name, command in collected.items():
            words = files[name].around(on_cpu(PROGRAM_CPU, command))
            turners[name] = Turner(words, {}, COLLECTOR_CPU, stack)
        for name, (command, variables) in _peers(folder, stack).items():
            turners[name] = _pinned(command, variables, stack)
        subjects = {name: (turner, BURSTS.get(name, BURST)) for name, turner in turners.items()}
        values = alternate(subjects, turns, seed=9)
    found = []
    for name in values.keys() - {TICKS}:
        logged = turners[name].pieces
        if name in files:
            note = files[name].complete(logged)
        else:
            note = f"{share(_found(folder, name) / logged)} of {logged:,} events in the file"
        if name in BURSTS:
            note += f"; bursts of {BURSTS[name]:,}"
        case = f"call-{name.removeprefix('tare, ').lower()}"
        found.append(Case(case, name, TICKS, "ns", values[name], values[TICKS], note))
    return [*sorted(found, key=lambda case: case.name), *_threads(folder, turns)]


def absent() -> dict[str, str]:
    """Peers that are not measured, and why."""
    found = {}
    if not has_header("spdlog/spdlog.h"):
        found["spdlog"] = "libspdlog-dev is not installed"
    if not all(map(shutil.which, LTTNG)) or not has_header("lttng/tracepoint.h"):
        found["lttng-ust"] = "lttng-tools, liblttng-ust-dev or babeltrace2 is not installed"
    return found


def _pinned(command: list[str], variables: dict[str, str], stack: ExitStack) -> Turner:
    """A program whose first thread is kept to a CPU when it has started the others."""
    turner = Turner(command, variables, None, stack)
    turner.turn(1)
    os.sched_setaffinity(turner.process.pid, {PROGRAM_CPU})
    return turner


def _threads(folder: Path, turns: int) -> Iterator[Case]:
    """Two pinned threads beside one, and the tick counter as often."""
    program = str(build_program(folder, "threads.c", "-pthread"))
    subjects, files = {}, {}
    with ExitStack() as stack:
        for kind in ("tare", "ticks"):
            for count in (1, THREADS):
                words = [program, kind, str(count)]
                if kind == "tare":
                    files[count] = Collected(folder / f"threads-{count}")
                    words = files[count].around(words)
                turner = Turner(words, {}, COLLECTOR_CPU, stack)
                subjects[f"{kind} {count}"] = (turner, BURST)
        values = alternate(subjects, turns, seed=10)
    notes = [
        collected.complete(count * subjects[f"tare {count}"][0].pieces)
        for count, collected in files.items()
    ]
    for kind, name in (("tare", "call-threads"), ("ticks", "ticks-threads")):
        single, threaded = values[f"{kind} 1"], values[f"{kind} {THREADS}"]
        several = f"{kind}, {THREADS} threads"
        note = notes[-1] if kind == "tare" else ""
        yield Case(name, several, f"{kind}, one thread", "ns", threaded, single, note)


def _peers(folder: Path, stack: ExitStack) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Programs and their variables, of those peers that are installed."""
    rust = str(build_with_cargo(folder))
    found: dict[str, tuple[list[str], dict[str, str]]] = {
        "tracing": ([rust, "tracing", str(folder)], {}),
        "fastrace": ([rust, "fastrace", str(folder)], {}),
    }
    left_out = absent()
    if "spdlog" not in left_out:
        flags = ("-DSPDLOG_COMPILED_LIB", "-DSPDLOG_FMT_EXTERNAL", "-lspdlog", "-lfmt", "-pthread")
        program = build_program(folder, "spdlog.cpp", *flags)
        found["spdlog"] = ([str(program), str(folder / "spdlog.log")], {})
    if "lttng-ust" not in left_out:
        program = build_program(folder, "lttng.c", "-llttng-ust", "-ldl")
        found["lttng-ust"] = ([str(program)], stack.enter_context(_lttng(folder)))
    return found


def _found(folder: Path, peer: str) -> int:
    """Events that a peer has written."""
    if peer == "lttng-ust":
        words = ["babeltrace2", str(folder / "lttng")]
        return subprocess.run(words, capture_output=True, check=True).stdout.count(b"\n")
    return (folder / f"{peer}.log").read_bytes().count(LINES.get(peer, b"\n"))


@contextmanager
def _lttng(folder: Path) -> Iterator[dict[str, str]]:
    """A session of LTTng with its consumer daemon; gives the variables of its programs."""
    variables = {"LTTNG_HOME": str(folder)}
    environment = os.environ | variables
    identity = folder / "lttng-sessiond.pid"
    # It returns when the daemon answers.
    daemon = ["lttng-sessiond", "--no-kernel", "--background", f"--pidfile={identity}"]
    subprocess.run(
        on_cpu(COLLECTOR_CPU, daemon),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    try:
        for words in (
            ["create", "bench", f"--output={folder / 'lttng'}"],
            ["enable-channel", "--userspace", "--subbuf-size=4M", "--num-subbuf=4", "bench"],
            ["enable-event", "--userspace", "--channel=bench", "tare_bench:call"],
            ["start"],
        ):
            _ask_lttng(words, environment)
        yield variables
        _ask_lttng(["destroy"], environment)
    finally:
        os.kill(int(identity.read_text()), signal.SIGTERM)


def _ask_lttng(words: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(
        ["lttng", "--no-sessiond", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode:
        raise SystemExit(f"lttng {' '.join(words)}: {done.stderr.strip()}")
