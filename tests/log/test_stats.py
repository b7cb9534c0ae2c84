# SPDX-License-Identifier: Apache-2.0
"""`tare log stats` against NumPy on the rows of `tare log dump`; its picture; spans as samples."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.log import conftest
from tests.log.conftest import TARE_LOG, dump, ran
from tests.log.test_id_handler import Steps, collector, ended
from tests.waiting import wait_for

from tare.samples.formats import tare_log
from tare.samples.sql.engine import connect

ENDS = {"request<": "request", "parse  out": "parse", "work tout": "work", "gone": "go"}
BEGINS = {"request>": "request", "parse  in": "parse", "work tin": "work", "go": "go"}
PAIR = ("--pair", "go=gone")


@pytest.fixture(scope="module")
def file(compiled: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two threads with two thousand requests each, the last of which does not end."""
    file = tmp_path_factory.mktemp("stats") / "events.log"
    ran(file, compiled("nested"), 2, 2_000)
    return file


def stats(file: Path, *more: str) -> dict[str, Any]:
    return conftest.stats(file, *PAIR, *more)


def test_names_that_nothing_has_are_told(file: Path, tmp_path: Path) -> None:
    words = ["--pair", "go=nowhere", "--pair", "*->=*-<", *PAIR]
    counters = ["--to", "chrome", "--out", str(tmp_path / "out"), "--counter", "no *"]
    for command, more in (("stats", list[str]()), ("export", counters)):
        done = subprocess.run(
            [TARE_LOG, command, file, *words, *more], check=True, capture_output=True, text=True
        )
        expected = [
            "tare-log: --pair go=nowhere: no process has opened two such channels",
            "tare-log: --pair *->=*-<: no process has opened two such channels",
        ]
        if more:
            expected.append("tare-log: --counter no *: no process has opened such a channel")
        assert done.stderr.splitlines() == expected


def durations(file: Path) -> tuple[dict[str, list[int]], dict[str, int]]:
    """By span that ended: all durations in nanoseconds, and the sum without what was within."""
    all_: dict[str, list[int]] = defaultdict(list)
    own: dict[str, int] = defaultdict(int)
    open_: dict[int, list[tuple[str, int]]] = defaultdict(list)
    within: dict[tuple[int, str, int], int] = defaultdict(int)
    for row in dump(file):
        if row.channel in BEGINS:
            open_[row.tid].append((BEGINS[row.channel], row.time_ns))
        elif row.channel in ENDS:
            name, begin = open_[row.tid].pop()
            duration = row.time_ns - begin
            all_[name].append(duration)
            own[name] += duration - within.pop((row.tid, name, begin), 0)
            if open_[row.tid]:
                within[row.tid, *open_[row.tid][-1]] += duration
    return all_, own


def test_times_of_spans(file: Path) -> None:
    told = stats(file)
    expected, own = durations(file)
    spans = {span["span"]: span for span in told["spans"]}
    assert set(spans) == set(expected)
    for name, span in spans.items():
        times = np.array(expected[name])
        assert span["count"] == len(times)
        assert span["unpaired"] == (2 if name == "request" else 0)
        assert span["total_ns"] == pytest.approx(times.sum(), rel=0.01)
        assert span["mean_ns"] == pytest.approx(times.mean(), rel=0.01)
        # Either time of the clock is rounded, a length in ticks once; bins add 0.1 %.
        for key, share in (("p50_ns", 0.5), ("p90_ns", 0.9), ("p99_ns", 0.99)):
            exact = np.quantile(times, share, method="inverted_cdf")
            assert span[key] == pytest.approx(exact, rel=0.01, abs=2)
        assert span["min_ns"] == pytest.approx(times.min(), abs=2)
        assert span["max_ns"] == pytest.approx(times.max(), rel=0.01, abs=2)
    assert [span["own_ns"] for span in told["spans"]] == sorted(
        (span["own_ns"] for span in told["spans"]), reverse=True
    )
    for name in ("request", "parse", "work", "go"):
        assert spans[name]["own_ns"] == pytest.approx(own[name], rel=0.02, abs=2 * 8_000)


def test_names_do_not_steer_the_terminal(tmp_path: Path) -> None:
    """Those of channels and spans, one of which did not end; `top` shows channels alike."""
    file = tmp_path / "events.log"
    script = """
import sys
from tare.log import Channel
for end in ("", ">", ">", "<"):
    Channel(sys.argv[1] + end).log(1)
"""
    ran(file, Path(sys.executable), "-c", script, "h\x1b[2J\x9b\u202eostile")
    command = [TARE_LOG, "stats", str(file)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    plain = r"h\u{1b}[2J\u{9b}\u{202e}ostile"
    assert shown.count(f"\n{plain} ") == 2
    assert f"\n{plain}: 1 without a begin or an end\n" in shown
    assert not set(shown) & set("\x1b\x9b\u202e")


def test_channels(file: Path) -> None:
    told = stats(file)
    rows = dump(file)
    counts = Counter(row.channel for row in rows)
    assert {channel["channel"]: channel["events"] for channel in told["channels"]} == counts
    assert (told["events"], told["lost"], told["processes"]) == (len(rows), 0, 1)
    assert told["threads"] == 3
    times = [row.time_ns for row in rows]
    seconds = (max(times) - min(times)) / 1e9
    assert told["seconds"] == pytest.approx(seconds, rel=0.2)
    rate = next(
        channel["events_per_second"] for channel in told["channels"] if channel["channel"] == "text"
    )
    assert rate == pytest.approx(counts["text"] / told["seconds"])


def test_losses(compiled: Callable[[str], Path], tmp_path: Path) -> None:
    """Those of a file, and of each channel."""
    file = tmp_path / "events.log"
    totals = ran(file, compiled("nested"), 2, 6_000, 0, "lose", TARE_LOG_RING="64K")
    told = stats(file)
    assert told["lost"] == totals["lost"] > 0
    assert sum(channel["lost"] for channel in told["channels"]) == totals["lost"]
    logged = {
        channel["channel"]: channel["events"] + channel["lost"] for channel in told["channels"]
    }
    assert (logged["text"], logged["work tin"]) == (12_000, 36_000)


def test_a_flame_graph(file: Path, tmp_path: Path) -> None:
    """Boxes are within what they were called from, and as wide as their time."""
    out = tmp_path / "flame.svg"
    told = stats(file, "--flame", str(out))
    space = "{http://www.w3.org/2000/svg}"
    boxes = []
    for group in ET.parse(out).getroot().iter(f"{space}g"):
        title, box = group.find(f"{space}title"), group.find(f"{space}rect")
        assert title is not None
        assert box is not None
        name = (title.text or "").split(":")[0]
        times = re.search(r", (\d+) times", title.text or "")
        x, y, width = (float(box.attrib[key]) for key in ("x", "y", "width"))
        boxes.append((name, x, y, width, int(times[1]) if times else 0))
    (all_,) = [box for box in boxes if box[0] == "all"]
    assert all_[3] == pytest.approx(1180)
    foot = max(box[2] for box in boxes)
    assert all_[2] == foot
    parents = {"nested": {"all"}, "request": {"nested"}, "parse": {"request"}}
    parents |= {"work": {"request", "work"}, "go": {"request"}}
    for name, x, y, width, _ in boxes:
        if name == "all":
            continue
        below = [
            box
            for box in boxes
            if box[2] - y == pytest.approx(18) and box[1] - 0.02 <= x
            if x + width <= box[1] + box[3] + 0.02
        ]
        assert {box[0] for box in below} <= parents[name]
        assert below
    spans = {span["span"]: span for span in told["spans"]}
    for name in ("request", "parse", "work", "go"):
        assert sum(box[4] for box in boxes if box[0] == name) == spans[name]["count"]


def test_a_picture_takes_no_files_place(file: Path) -> None:
    before = file.read_bytes()
    command = [TARE_LOG, "stats", str(file), "--flame", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"tare-log: --flame {file}: it is the file to read; give another\n"
    assert file.read_bytes() == before


UNSERVED = """
import os, threading
from tare.log import Channel, Span
work, more = Span("work"), Channel("more")
for number in range(100):
    with work.numbered(number):
        pass
os.closerange(3, 1 << 20)
thread = threading.Thread(target=lambda: [more.log(number) for number in range(70)])
thread.start()
thread.join()
"""


def test_events_that_found_no_ring_are_told_by_all_readers(tmp_path: Path) -> None:
    file, out = tmp_path / "events.log", tmp_path / "out"
    assert ran(file, Path(sys.executable), "-c", UNSERVED)["unserved"] == 70
    told = stats(file)
    (end,) = told["ends"]
    assert (told["unserved"], end["unserved"], end["how"]) == (70, 70, "finished")
    text = subprocess.run([TARE_LOG, "stats", file], check=True, capture_output=True, text=True)
    assert "processes: 1 finished\n70 events unserved" in text.stdout
    command = [TARE_LOG, "export", str(file), "--to", "chrome", "--out", str(out), "--json"]
    written = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert (written["events"], written["lost"], written["unserved"]) == (0, 0, 70)
    (note,) = tare_log.read(connect(), file).notes
    assert note.startswith("70 events were lost")


STEPS = """
import sys
from tare.log import Channel
channel, number = Channel("steps", policy="wait"), 0
for line in sys.stdin:
    for number in range(number, number + int(line)):
        channel.log(number)
    number += 1
    print(number, flush=True)
"""


def taken_over(file: Path, times: int) -> Callable[[], bool]:
    """Whether its collector has taken the program over so often: each time its channel is named."""
    return lambda: file.read_bytes().count(b'"steps"') >= times


def test_a_process_in_several_files_is_read_whole_in_any_order(tmp_path: Path) -> None:
    """Two collectors by turns, each with a file of its own."""
    files, socket = [tmp_path / "1.log", tmp_path / "2.log"], tmp_path / "socket"
    program = None
    for turn in range(4):
        file = files[turn % 2]
        with collector(socket, file) as collecting:
            program = program or Steps(Path(sys.executable), socket, "-c", STEPS)
            assert program.log(100) == 100 * (turn + 1)
            wait_for(taken_over(file, turn // 2 + 1))
            if turn == 3:
                program.end()
            ended(collecting)
    for order in ([0, 1], [1, 0], [1, 0, 1]):
        rows = dump(*(files[place] for place in order))
        assert sorted(int(row.payload) for row in rows) == list(range(400))
    assert conftest.ends(files[0]) == ["left"]
    assert conftest.ends(files[1]) == ["finished"]
    told = stats(files[0], str(files[1]))
    assert (told["events"], [end["how"] for end in told["ends"]]) == (400, ["finished"])


@pytest.mark.parametrize("exported", [False, True], ids=["file", "parquet"])
def test_spans_are_samples(exported: bool, compiled: Callable[[str], Path], tmp_path: Path) -> None:
    """`tare compare` finds the span that takes longer in one of two programs."""
    files: dict[str, list[str]] = {"before": [], "after": []}
    for run in range(8):
        # An answer takes six times as long afterwards.
        for name, spins in (("before", 500_000), ("after", 3_000_000)):
            file = tmp_path / f"{name}{run}.log"
            ran(file, compiled("nested"), 1, 60, spins)
            if exported:
                out = file.with_suffix(".parquet")
                command = [TARE_LOG, "export", str(file), "--to", "parquet", *PAIR]
                subprocess.run([*command, "--out", str(out)], check=True, capture_output=True)
                file = out
            files[name].append(str(file))
    before, after = (f"{name}={','.join(files[name])}" for name in files)
    command = [sys.executable, "-m", "tare", "compare", "--baseline", before, after, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    comparisons = json.loads(done.stdout)["comparisons"]
    medians = {
        comparison["span"]: comparison
        for comparison in comparisons
        if comparison["metric"] == "p50"
    }
    assert medians["request"]["verdict"] == "slower", medians["request"]
    # Of two channels that are no usual pair, only who exports can say that they are one.
    assert ("go" in medians) is exported
    if exported:
        assert medians["go"]["verdict"] == "slower", medians["go"]
