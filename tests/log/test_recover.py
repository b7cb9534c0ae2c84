# SPDX-License-Identifier: Apache-2.0
"""What `tare log recover` makes of files that were cut off or damaged, and of segments."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from tests.log.conftest import TARE_LOG, Row, dump, ends, events, served
from tests.log.test_failures import collecting, counting, ended
from tests.log.test_kills import agree, committed
from tests.waiting import wait_for

Compiled = Callable[[str], Path]
EVENTS = 100_000


def recover(source: Path, out: Path) -> dict[str, Any]:
    command = [TARE_LOG, "recover", str(source), "--out", str(out), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def whole(compiled: Compiled, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("whole") / "events.log"
    command = [TARE_LOG, "run", "--out", str(file), "--", str(compiled("codecs")), f"{EVENTS}"]
    subprocess.run(command, check=True)
    return file


@pytest.fixture(scope="module")
def by_ticks(whole: Path) -> dict[int, Row]:
    """Its events."""
    return {row.ticks: row for row in rows_of(whole)}


def test_a_whole_file_stays_as_it_is(whole: Path, tmp_path: Path) -> None:
    found = recover(whole, tmp_path / "again.log")
    assert (tmp_path / "again.log").read_bytes() == whole.read_bytes()
    assert (found["programs"], found["events"], found["damaged"]) == (1, EVENTS, 0)


def test_the_name_of_the_result_need_not_be_text(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / os.fsdecode(b"\xff.log")
    assert recover(whole, out)["out"] == f"{tmp_path}/\N{REPLACEMENT CHARACTER}.log"
    assert out.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("seed", range(6))
def test_what_is_cut_off_or_damaged_costs_its_own_events(
    whole: Path, by_ticks: dict[int, Row], tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    data = bytearray(whole.read_bytes())
    # One place alone may be in a block without events; the last block says how the program ended.
    places = [chance.randrange(len(data) // 4, len(data) * 3 // 4) for _ in range(4)]
    if seed % 2:
        del data[places[0] :]
    else:
        for place in places:
            data[place : place + 40] = chance.randbytes(40)
    damaged, out = tmp_path / "damaged.log", tmp_path / "out.log"
    damaged.write_bytes(data)
    found = recover(damaged, out)
    rows = rows_of(out)
    assert all(by_ticks[row.ticks] == row for row in rows)
    assert len(rows) == found["events"] < len(by_ticks)
    assert found["damaged"] > 0
    assert recover(out, tmp_path / "once more.log")["damaged"] == 0
    assert ends(out) == ["recovered" if seed % 2 else "finished"]


def test_a_program_that_was_taken_over_is_one(compiled: Compiled, tmp_path: Path) -> None:
    """It has a number with each collector, and an end with the last; some of its blocks may be
    there twice."""
    page, file, out = tmp_path / "page", tmp_path / "events.log", tmp_path / "out.log"
    with ExitStack() as stack:
        with collecting(tmp_path) as first:
            program = stack.enter_context(counting(compiled, tmp_path))
            first.kill()
            first.wait()
        with collecting(tmp_path) as second:
            wait_for(lambda: served(second.pid))
            program.kill()
            program.wait()
            ended(second)
    agree(file, page)
    found = recover(file, out)
    logged = events(file)["payload"].drop_null()
    assert (found["programs"], found["events"]) == (1, len(logged))
    assert ends(out) == ["ended"]


def states(pid: int) -> list[str]:
    """Of its threads, by their letters in proc(5): they stop one after the other."""
    stats = Path(f"/proc/{pid}/task").glob("*/stat")
    return [stat.read_text().rpartition(")")[2].split()[0] for stat in stats]


def test_a_program_without_a_collector(compiled: Compiled, tmp_path: Path) -> None:
    """Of its own memory, and of a copy of that."""
    page, socket = tmp_path / "page", tmp_path / "socket"
    command = [TARE_LOG, "collect", "--socket", str(socket), "--out", str(tmp_path / "first.log")]
    collector = subprocess.Popen(command)
    wait_for(socket.exists)
    counting = [str(compiled("counting")), str(page), "2"]
    program = subprocess.Popen(counting, env=os.environ | {"TARE_LOG": str(socket)})
    try:
        wait_for(lambda: page.stat().st_size and all(committed(page)))
        segment = segment_of(program.pid)
        refused = subprocess.run(
            [TARE_LOG, "recover", segment, "--out", tmp_path / "refused.log"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert refused.returncode == 2
        assert f"collector (process {collector.pid}) uses it" in refused.stderr
        assert not (tmp_path / "refused.log").exists()
        # Else it may have collected all by the time that it is killed.
        collector.send_signal(signal.SIGSTOP)
        wait_for(lambda: set(states(collector.pid)) == {"T"})
        time.sleep(0.1)
        # Without a collector it would lose what there is no room for.
        program.send_signal(signal.SIGSTOP)
        wait_for(lambda: set(states(program.pid)) == {"T"})
        collector.kill()
        collector.wait()
        recover(segment, tmp_path / "of memory.log")
        copy_sparse(segment, tmp_path / "copy")
    finally:
        program.kill()
        program.wait()
    found = recover(tmp_path / "copy", tmp_path / "of copy.log")
    last = committed(page)
    for name in ["of memory.log", "of copy.log"]:
        table = events(tmp_path / name)
        for place in range(2):
            its = table.filter(pc.equal(table["channel"], f"thread {place}"))["payload"].to_numpy()
            its = np.unique(its)
            assert its[-1] - last[place] in (0, 1)
            assert np.array_equal(its, np.arange(its[0], its[-1] + 1))
        if name == "of copy.log":
            assert len(table) == found["events"]


COUNTING = """
import sys
from tare.log import Channel
count, numbers = Channel("count", handler="fast-periodic-counter"), Channel("numbers")
for number in range(100):
    count.log(number)
    numbers.log(number)
print("done", flush=True)
sys.stdin.read()
"""


def test_a_copy_has_no_times_of_the_machine_that_reads_it(tmp_path: Path) -> None:
    """What a counter has come to in the end is told at the last time that the copy has."""
    command = [sys.executable, "-c", COUNTING]
    variables = os.environ | {"TARE_LOG": str(tmp_path / "nobody")}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=variables) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"done\n"
        copy_sparse(segment_of(program.pid), tmp_path / "copy")
    command = [TARE_LOG, "recover", str(tmp_path / "copy"), "--out", str(tmp_path / "out.log")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "so events have ticks instead of times" in done.stderr
    rows = rows_of(tmp_path / "out.log")
    (count,) = [row for row in rows if row.channel == "count"]
    assert count.payload == "100"
    assert count.ticks == max(row.ticks for row in rows if row.channel == "numbers")


def rows_of(file: Path) -> list[Row]:
    """Without times of day, which are exact only by readings of the clocks on both sides."""
    return [row._replace(time_ns=0) for row in dump(file)]


def segment_of(pid: int) -> Path:
    links = Path(f"/proc/{pid}/fd").iterdir()
    return next(link for link in links if str(link.readlink()) == "/memfd:tare-log (deleted)")


def copy_sparse(source: Path, target: Path) -> None:
    with source.open("rb") as segment, target.open("wb") as copy:
        size = segment.seek(0, os.SEEK_END)
        copy.truncate(size)
        place = 0
        while place < size:
            try:
                place = os.lseek(segment.fileno(), place, os.SEEK_DATA)
            except OSError:
                break
            end = os.lseek(segment.fileno(), place, os.SEEK_HOLE)
            copy.seek(place)
            copy.write(os.pread(segment.fileno(), end - place, place))
            place = end
