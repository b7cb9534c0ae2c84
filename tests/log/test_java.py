# SPDX-License-Identifier: Apache-2.0
"""What Java programs log through tare-log.jar, on every JDK of this machine from 17 on."""

import json
import os
import platform
import random
import re
import signal
import struct
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from tests.log.conftest import TARE_LOG, Row, dump, ends, events
from tests.log.jvm import LOGGING, classpath, version_of
from tests.log.test_kills import THREADS, TRIES, committed
from tests.log.test_memory_layout import NAMES, Memory, vector
from tests.log.test_round_trips import free_port
from tests.waiting import SECONDS, wait_for

from tare.native import native

HEADER = Path(native("include", "tare_log.h"))
ROOT = Path(__file__).parents[2]
MOOBENCH = ROOT / "java" / "moobench" / "target" / "moobench.jar"


def logged(
    java: list[str],
    folder: Path,
    *arguments: object,
    options: Sequence[object] = (),
    **variables: str,
) -> tuple[Path, dict[str, int]]:
    """The file, and what tare-log counts."""
    file = folder / "events.log"
    command = [TARE_LOG, "run", *options, "--out", file, "--json", "--", *java]
    done = subprocess.run(
        [str(word) for word in [*command, LOGGING, *arguments]],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        env=os.environ | variables,
    )
    assert done.returncode == 0, done.stderr
    return file, json.loads(done.stderr.splitlines()[-1])


def payloads(rows: list[Row], channel: str) -> list[str]:
    return [row.payload for row in rows if row.channel == channel]


def test_payloads_handlers_and_spans(java: list[str], tmp_path: Path) -> None:
    file, totals = logged(java, tmp_path, "payloads")
    rows = dump(file)
    edge = 1 << 45
    numbers = [0, -1, edge - 1, -edge, edge, 2**63 - 1, -(2**63), 42, 44]
    assert payloads(rows, "numbers") == [str(number) for number in numbers]
    assert payloads(rows, 'texts, "quoted"') == ["hello, world", "", "x" * 4096, "in"]
    assert payloads(rows, "tenth") == [str(number) for number in range(0, 100, 10)]
    assert payloads(rows, "some") == [str(number) for number in range(100) if number % 8 < 3]
    assert not payloads(rows, "never")
    assert payloads(rows, "größe>") == ["1", "0"]
    assert payloads(rows, "größe<") == ["0", "2", "0"]
    assert totals["events"] == len(rows)
    assert [row.ticks for row in rows] == sorted(row.ticks for row in rows)


def test_the_program_on_the_page(java: list[str], tmp_path: Path) -> None:
    text = (ROOT / "docs" / "log-languages.md").read_text()
    (block,) = re.findall(r"^```java\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    source, file = tmp_path / "Program.java", tmp_path / "events.log"
    source.write_text(block, encoding="utf-8")
    command = [TARE_LOG, "run", "--out", str(file), "--", *java, str(source)]
    subprocess.run(command, check=True, timeout=SECONDS)
    rows = dump(file)
    expected = {"requests": 1000, "texts": 1, "work>": 1000, "work<": 1000}
    assert Counter(row.channel for row in rows) == expected
    assert payloads(rows, "texts") == ["done"]


def test_a_million_events_of_eight_threads(java: list[str], tmp_path: Path) -> None:
    threads, each = 8, 62_500
    file, totals = logged(java, tmp_path, "threads", threads, each, TARE_LOG_RING="256K")
    assert (totals["events"], totals["lost"]) == (2 * threads * each, 0)
    table = events(file)
    numbers = np.sort(table.filter(pc.equal(table["channel"], "all"))["payload"].to_numpy())
    assert np.array_equal(numbers, np.arange(threads * each))
    for place in range(threads):
        its = table.filter(pc.equal(table["channel"], f"thread {place}"))
        assert np.array_equal(its["payload"].to_numpy(), np.arange(each))
        assert set(its["thread"].to_pylist()) == {f"logger {place}"}
        assert (np.diff(its["ticks"].to_numpy()) >= 0).all()


@pytest.mark.parametrize("handler", ["id", "fox-end"])
def test_rules_give_the_jvm_what_only_the_library_does(
    java: list[str], tmp_path: Path, handler: str
) -> None:
    rules, count = tmp_path / "rules", 500
    at = f"address = '127.0.0.1:{free_port()}'"
    start = f"[[rule]]\nchannel = 'thread 0'\nhandler = 'fox-start'\n{at}\n"
    end = f"[[rule]]\nchannel = 'all'\nhandler = '{handler}'\n"
    rules.write_text(f"{start}{end}{at}\n" if handler == "fox-end" else end)
    file, totals = logged(java, tmp_path, "threads", 1, count, options=("--rules", rules))
    rows = dump(file)
    assert payloads(rows, "all") == [str(number) for number in range(count)]
    assert totals["deferred"] == 0
    trips = len(payloads(rows, "all rtt"))
    assert trips + totals["lost"] == (count if handler == "fox-end" else 0)
    assert (trips > 0) is (handler == "fox-end")


def test_times_are_those_of_the_wall(java: list[str], tmp_path: Path) -> None:
    begin = time.time_ns()
    file, _ = logged(java, tmp_path, "threads", 1, 1000)
    end = time.time_ns()
    times = np.sort(events(file)["time_ns"].to_numpy())
    assert begin < times[0] < times[-1] < end


def test_rings_of_ended_threads_serve_others(java: list[str], tmp_path: Path) -> None:
    threads = 3_000
    file, totals = logged(java, tmp_path, "churn", threads, TARE_LOG_RING="64K")
    rows = dump(file)
    assert sorted(int(row.payload) for row in rows) == list(range(threads))
    assert len({row.tid for row in rows}) > threads / 2
    assert (totals["lost"], totals["unserved"]) == (0, 0)


@pytest.mark.parametrize("policy", ["DROP", "OVERWRITE", "WAIT"])
def test_losses_are_counted_exactly(java: list[str], tmp_path: Path, policy: str) -> None:
    burst = 2_000_000
    file, totals = logged(java, tmp_path, "burst", burst, policy, TARE_LOG_RING="64K")
    table = events(file)
    kept = table.filter(pc.equal(table["channel"], "burst"))["payload"].to_numpy()
    lost = pc.sum(table["lost"]).as_py() or 0
    assert (np.diff(kept) > 0).all()
    assert len(kept) + lost == burst
    assert (totals["events"], totals["lost"]) == (len(kept), lost)
    assert (lost == 0) == (policy == "WAIT")
    assert kept[-1] == burst - 1 or policy == "DROP"


@pytest.mark.parametrize("seed", range(TRIES))
def test_all_that_was_logged_before_kill_9(java: list[str], tmp_path: Path, seed: int) -> None:
    page, file = tmp_path / "page", tmp_path / "events.log"
    program = [*java, LOGGING, "endless", str(page), str(THREADS)]
    with subprocess.Popen([TARE_LOG, "run", "--out", file, "--json", "--", *program]) as process:
        wait_for(lambda: page.stat().st_size and all(committed(page)))
        time.sleep(random.Random(seed).uniform(0, 0.1))
        (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(child), signal.SIGKILL)
        assert process.wait(SECONDS) == 128 + signal.SIGKILL
    last = committed(page)
    table = events(file)
    for place in range(THREADS):
        its = table.filter(pc.equal(table["channel"], f"thread {place}"))
        numbers = its["payload"].to_numpy()
        # The event stands in the ring a moment before its number stands in the page.
        assert len(numbers) - last[place] in (0, 1)
        assert np.array_equal(numbers, np.arange(1, len(numbers) + 1))


def test_the_end_of_the_stack_breaks_one_event_off(java: list[str], tmp_path: Path) -> None:
    times = 60
    file, totals = logged(java, tmp_path, "stack", times)
    rows = sorted(dump(file), key=lambda row: row.ticks)
    assert totals["lost"] == 0
    assert payloads(rows, "after") == [str(time) for time in range(times)]
    descents: list[list[int]] = [[]]
    for row in rows:
        if row.channel == "after":
            descents.append([])
        else:
            descents[-1].append(int(row.payload))
    assert descents.pop() == []
    for depths in descents:
        assert len(depths) > 100
        assert depths == list(range(len(depths)))


def test_what_is_chosen_is_said(java: list[str], tmp_path: Path) -> None:
    program = [*java, LOGGING, "diagnose"]
    lines = subprocess.check_output(program, text=True, cwd=tmp_path).splitlines()
    said = dict(line.split(": ", 1) for line in lines)
    is_new = version_of(java) >= 22
    assert said["library"] == native("lib", "libtare_log.so")
    assert said["memory"] == ("MemorySegment" if is_new else "Unsafe")
    assert said["clock"].startswith("ticks, read by ")
    if is_new or (version_of(java) == 17 and platform.machine() == "x86_64"):
        assert "native method" not in said["clock"]
    assert said["virtual threads"] == ("by critical calls" if is_new else "none in this Java")
    assert said["collector"].startswith("none, so events are discarded")


def test_the_native_method_can_be_chosen(java: list[str], tmp_path: Path) -> None:
    chosen = [java[0], "-Dtare.log.clock=native", *java[1:]]
    _, totals = logged(chosen, tmp_path, "threads", 1, 1000)
    assert (totals["events"], totals["lost"]) == (2000, 0)
    program = [*chosen, LOGGING, "diagnose"]
    said = subprocess.check_output(program, text=True)
    assert "\nclock: ticks, read by a native method: -Dtare.log.clock=native\n" in said


def test_a_program_goes_on_without_the_library(java: list[str], tmp_path: Path) -> None:
    without = [*java, "-Dtare.log.library=/nowhere/libtare_log.so"]
    program = [*without, LOGGING]
    file = tmp_path / "events.log"
    command = [TARE_LOG, "run", "--out", str(file), "--", *program, "payloads"]
    subprocess.run(command, check=True, capture_output=True)
    said = subprocess.check_output([*program, "diagnose"], text=True)
    assert "library: events are discarded: " in said
    assert "/nowhere/libtare_log.so" in said


@pytest.mark.parametrize("how", ["exit", "halt"])
def test_a_program_that_ends_itself(java: list[str], tmp_path: Path, how: str) -> None:
    """In the middle of it all, without what else would be done in the end."""
    file = tmp_path / "events.log"
    program = [*java, LOGGING, "leave", how]
    command = [TARE_LOG, "run", "--out", str(file), "--", *program]
    assert subprocess.run(command, check=False).returncode == 3
    assert payloads(dump(file), "leave") == ["1"]
    assert ends(file) == ["finished"]


def test_the_same_words_as_other_languages_write(java: list[str], tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*java, LOGGING, "vector"],
        env=os.environ | {"TARE_LOG": str(tmp_path / "nobody"), "TARE_LOG_RING": "64K"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        memory = Memory(process.pid)
        names, words = memory.names(), memory.words()
        process.communicate(b"\n")
    assert names == NAMES
    for record in vector():
        its, words = words[: len(record)], words[len(record) :]
        if record[1] & 3 == 3:  # the thread, whose number and name are its own
            assert its[1] == record[1]
            assert struct.pack("2Q", *its[4:]).rstrip(b"\0") == b"java"
        else:
            assert its[1:] == record[1:]
    assert not words


def test_cloudprofilers_calls(java: list[str], tmp_path: Path) -> None:
    program = [*java, LOGGING, "cloudprofiler"]
    file = tmp_path / "events.log"
    command = [TARE_LOG, "run", "--out", str(file), "--", *program]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    closed = ["true", "-1", "false", "false"]
    assert said == ["0", "0", "0", "0", "0", *closed, "false", "-1", "-1"]
    rows = dump(file)
    assert payloads(rows, "ids") == [str(tuple_) for tuple_ in range(2000)]
    assert payloads(rows, "ids (2)") == [str(-2 - tuple_) for tuple_ in range(2000)]
    assert payloads(rows, "some") == ["0", "1000"]
    assert payloads(rows, "xoy") == [str(tuple_) for tuple_ in range(2000) if tuple_ % 8 < 3]
    assert not payloads(rows, "none")
    assert payloads(rows, "ends") == ["0", "1999"]
    assert payloads(rows, "middle") == [str(tuple_) for tuple_ in range(2, 2000, 5)]
    assert payloads(rows, "count") == ["2000"]
    told = [text.split(" ") for text in payloads(rows, "cloudprofiler")]
    assert [(words[1:4], words[5]) for words in told] == [
        (["0", "a", "0"], "ids"),
        (["1", "d", "2"], "ids"),
        (["2", "b", "4"], "some"),
        (["3", "b", "5"], "xoy"),
        (["4", "a", "9"], "none"),
        (["5", "a", "6"], "ends"),
        (["6", "a", "3"], "middle"),
        (["7", "a", "8"], "count"),
    ]


LAYOUT = """
import java.lang.reflect.*;
class Layout {
    public static void main(String[] arguments) throws Exception {
        for (String name : "LIMIT HEAD WORDS MASK PUBLISHED".split(" ")) {
            Field field = Class.forName("tare.log.Writer").getDeclaredField(name);
            field.setAccessible(true);
            System.out.print(field.get(null) + " ");
        }
        Method bytes = tare.log.Options.class.getDeclaredMethod("bytes");
        bytes.setAccessible(true);
        Object options = new tare.log.Options(
                tare.log.Options.Handler.X_OF_Y, tare.log.Options.Policy.OVERWRITE,
                tare.log.Options.Codec.LZO1X, 7, 1 << 20);
        for (byte value : (byte[]) bytes.invoke(options)) {
            System.out.print(value + " ");
        }
    }
}
"""
C_LAYOUT = """
#include <stdio.h>
#include <tare_log.h>
#define AT(field) printf("%zu ", offsetof(struct tare_log_writer, field))
int main(void) {
    AT(limit), AT(head), AT(words), AT(mask), AT(published);
    struct tare_log_options options = {
        .handler = TARE_LOG_X_OF_Y, .policy = TARE_LOG_OVERWRITE,
        .codec = TARE_LOG_LZO1X, .parameters = tare_log_x_of_y(7, 1 << 20)};
    for (size_t at = 0; at < sizeof(options); at++) printf("%d ", ((signed char *)&options)[at]);
}
"""


def test_java_and_c_have_one_layout(
    java: list[str], compiled: Callable[[str], Path], tmp_path: Path
) -> None:
    compiled("payloads")  # skips where there is no compiler
    (tmp_path / "Layout.java").write_text(LAYOUT)
    (tmp_path / "layout.c").write_text(C_LAYOUT)
    program = tmp_path / "layout"
    library = native("lib", "libtare_log.a")
    include = f"-I{HEADER.parent}"
    subprocess.run(["cc", include, tmp_path / "layout.c", library, "-o", program], check=True)
    ours = subprocess.check_output([*java, tmp_path / "Layout.java"], text=True)
    assert ours == subprocess.check_output(program, text=True)


@pytest.mark.parametrize(("application", "logged"), [("Simple", 0), ("Tare", 2)])
def test_moobenchs_experiment(
    java: list[str], tmp_path: Path, application: str, logged: int
) -> None:
    calls, depth, threads = 20_000, 10, 2
    program = [word if word != classpath() else f"{word}:{MOOBENCH}" for word in java]
    program += ["tare.moobench.Benchmark", "--total-calls", str(calls), "-m", "0", "-q", "-f"]
    program += ["-t", str(threads), "-d", str(depth), "-o", str(tmp_path / "raw.csv")]
    program += ["-a", f"tare.moobench.MonitoredClass{application}"]
    file = tmp_path / "events.log"
    command = [TARE_LOG, "run", "--out", str(file), "--json", "--", *program]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=SECONDS)
    lines = (tmp_path / "raw.csv").read_text().splitlines()
    rows = [line.split(";") for line in lines]
    assert [row[0] for row in rows] == ["thread0"] * calls + ["thread1"] * calls
    assert all(int(nanoseconds) >= 0 and int(heap) > 0 for _, nanoseconds, heap, _ in rows)
    totals = json.loads(done.stderr.splitlines()[-1])
    assert totals["events"] == threads * calls * depth * logged
    assert totals["lost"] == 0
