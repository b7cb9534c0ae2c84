# SPDX-License-Identifier: Apache-2.0
"""What a call takes in bursts that fit a ring: in each language, beside what others use."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.cases import Case
from bench.log.built import built, cargo_built, has_header
from bench.log.collected import Collected
from bench.turns import Turner, alternate, on_cpu

BURST, SLOW_BURST = 20_000, 2_000
PROGRAM_CPU, COLLECTOR_CPU = 0, 1
THREADS = 2
TICKS = "the tick counter alone"
LTTNG = ("lttng-sessiond", "lttng")


def cases(folder: Path, turns: int) -> list[Case]:
    """A call of each language and of each peer, beside the tick counter; two threads beside one."""
    with ExitStack() as stack:
        calls = built(folder, "calls.c")
        alone = Turner([str(calls), "ticks"], {}, PROGRAM_CPU, stack)
        subjects = {TICKS: (alone, BURST)}
        collected = {
            "tare, C": [str(calls), "tare"],
            "tare, C++": [str(built(folder, "calls.cpp"))],
            "tare, Rust": [str(cargo_built(folder)), "tare"],
            "tare, Python": [sys.executable, str(Path(__file__).parent / "calls" / "calls.py")],
        }
        files = {name: Collected(folder / f"{place}") for place, name in enumerate(collected)}
        for name, command in collected.items():
            words = files[name].around(on_cpu(PROGRAM_CPU, command))
            subjects[name] = (Turner(words, {}, COLLECTOR_CPU, stack), BURST)
        for name, (command, variables) in _peers(folder, stack).items():
            subjects[name] = (Turner(command, variables, PROGRAM_CPU, stack), SLOW_BURST)
        values = alternate(subjects, turns, seed=9)
    found = []
    for name in values.keys() - {TICKS}:
        if name in files:
            note = files[name].complete(BURST * (turns + 1))
        else:
            found_there = _found(folder, name) / (SLOW_BURST * (turns + 1))
            note = f"{found_there:.2%} in the file"
        case = f"call-{name.removeprefix('tare, ').lower()}"
        found.append(Case(case, name, TICKS, "ns", values[name], values[TICKS], note))
    return [*sorted(found, key=lambda case: case.name), *_threads(folder, turns)]


def _threads(folder: Path, turns: int) -> Iterator[Case]:
    """Two pinned threads beside one, and the tick counter as often."""
    program = str(built(folder, "threads.c", "-pthread"))
    values = {}
    with ExitStack() as stack:
        subjects = {}
        for kind in ("tare", "ticks"):
            for count in (1, THREADS):
                words = [program, kind, str(count)]
                if kind == "tare":
                    words = Collected(folder / f"threads-{count}").around(words)
                turner = Turner(words, {}, COLLECTOR_CPU, stack)
                subjects[f"{kind} {count}"] = (turner, BURST)
        values = alternate(subjects, turns, seed=10)
    for kind, name in (("tare", "call-threads"), ("ticks", "ticks-threads")):
        one, two = values[f"{kind} 1"], values[f"{kind} {THREADS}"]
        yield Case(name, f"{kind}, {THREADS} threads", f"{kind}, one thread", "ns", two, one)


def _peers(folder: Path, stack: ExitStack) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Programs and their variables, of those peers that are installed."""
    rust = str(cargo_built(folder))
    found: dict[str, tuple[list[str], dict[str, str]]] = {
        "tracing": ([rust, "tracing", str(folder)], {}),
        "fastrace": ([rust, "fastrace", str(folder)], {}),
    }
    if has_header("spdlog/spdlog.h"):
        flags = ("-DSPDLOG_COMPILED_LIB", "-DSPDLOG_FMT_EXTERNAL", "-lspdlog", "-lfmt", "-pthread")
        program = built(folder, "spdlog.cpp", *flags)
        found["spdlog"] = ([str(program), str(folder / "spdlog.log")], {})
    if all(map(shutil.which, LTTNG)) and has_header("lttng/tracepoint.h"):
        program = built(folder, "lttng.c", "-llttng-ust", "-ldl")
        found["lttng-ust"] = ([str(program)], stack.enter_context(_lttng(folder)))
    return found


def _found(folder: Path, peer: str) -> int:
    """Events that a peer has written: a line is one."""
    if peer == "lttng-ust":
        words = ["babeltrace2", str(folder / "lttng")]
        return subprocess.run(words, capture_output=True, check=True).stdout.count(b"\n")
    return (folder / f"{peer}.log").read_bytes().count(b"\n")


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
