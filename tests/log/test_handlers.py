# SPDX-License-Identifier: Apache-2.0
"""What handlers leave of many random events, from the rules file to the dump, is what a
literal model leaves of them."""

import json
import signal
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.log.conftest import TARE_LOG, events
from tests.log.test_programs import codecs_of
from tests.waiting import SECONDS

EVENTS = 250_000
MASK = 2**64 - 1
SEED = 88_172_645_463_325_252

Compiled = Callable[[str], Path]


@cache
def logged(count: int = EVENTS, seed: int = SEED) -> list[int]:
    """What `handled` logs: Marsaglia's xorshift64, without its lowest 20 bits."""
    numbers = []
    for _ in range(count):
        seed ^= seed << 13 & MASK
        seed ^= seed >> 7
        seed ^= seed << 17 & MASK
        numbers.append((seed - 2**64 if seed >> 63 else seed) >> 20)
    return numbers


def run(
    compiled: Compiled,
    folder: Path,
    rules: str,
    channels: list[str],
    *,
    count: int = EVENTS,
    threads: int = 1,
    ending: str = "end",
) -> pa.Table:
    """What is in the file after `handled` has logged on the channels."""
    file, rules_file = folder / "events.log", folder / "rules.toml"
    rules_file.write_text(rules + "[[rule]]\npolicy = 'wait'\n")
    words = [compiled("handled"), count, SEED, threads, ending, *channels]
    command = [TARE_LOG, "run", "--rules", rules_file, "--out", file, "--json", "--", *words]
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == (128 + signal.SIGKILL if ending == "kill" else 0), done.stderr
    table = events(file)
    totals = json.loads(done.stderr)
    assert (totals["events"], totals["lost"], totals["deferred"]) == (len(table), 0, 0)
    return table


def numbers(table: pa.Table, channel: str) -> list[int]:
    kept: list[int] = of(table, channel)["payload"].to_pylist()
    return kept


def of(table: pa.Table, channel: str) -> pa.Table:
    return table.filter(pc.equal(table["channel"], channel))


def ticks(table: pa.Table) -> np.ndarray:
    read: np.ndarray = table["ticks"].to_numpy()
    return read


def rule(channel: str, handler: str, more: str = "") -> str:
    return f"[[rule]]\nchannel = '{channel}'\nhandler = '{handler}'\npolicy = 'wait'\n{more}\n"


@pytest.mark.parametrize(
    ("handler", "codec"), [("buffered", 2), ("id", 1), ("zstd", 2), ("lz4", 3), ("lzo1x", 4)]
)
def test_every_event_is_kept(compiled: Compiled, tmp_path: Path, handler: str, codec: int) -> None:
    table = run(compiled, tmp_path, rule("all", handler), ["all"])
    assert numbers(table, "all") == logged()
    assert (np.diff(ticks(table)) >= 0).all()
    blocks = codecs_of((tmp_path / "events.log").read_bytes())
    assert {number for block in blocks for number in block} == {codec}


def test_null(compiled: Compiled, tmp_path: Path) -> None:
    table = run(compiled, tmp_path, rule("none", "null"), ["none"])
    assert len(table) == 0


@pytest.mark.parametrize("n", [1, 7, None, 2_000_000])
def test_downsample(compiled: Compiled, tmp_path: Path, n: int | None) -> None:
    rules = rule("some", "downsample", f"n = {n}" if n else "")
    table = run(compiled, tmp_path, rules, ["some"])
    assert numbers(table, "some") == [
        number for place, number in enumerate(logged()) if place % (n or 10) == 0
    ]


@pytest.mark.parametrize(
    ("x", "y", "said"), [(0, 8, True), (3, 8, True), (8, 8, True), (100, 16384, False)]
)
def test_x_of_y(compiled: Compiled, tmp_path: Path, x: int, y: int, said: bool) -> None:
    rules = rule("some", "x-of-y", f"x = {x}\ny = {y}" if said else "")
    table = run(compiled, tmp_path, rules, ["some"])
    assert numbers(table, "some") == [number for number in logged() if number % y < x]


@pytest.mark.parametrize("ending", ["close", "end", "kill"])
@pytest.mark.parametrize("count", [1, 2, EVENTS])
def test_first_last(compiled: Compiled, tmp_path: Path, ending: str, count: int) -> None:
    rules = rule("ends", "first-last")
    table = run(compiled, tmp_path, rules, ["ends", "all"], count=count, ending=ending)
    both = [logged()[0], logged()[count - 1]][: min(count, 2)]
    assert numbers(table, "ends") == both
    # The times are those of the events, not of when the last was written.
    assert ticks(of(table, "ends"))[-1] <= ticks(of(table, "all"))[-1]
    assert set(of(table, "ends")["thread"].to_pylist()) == {"handled"}


@pytest.mark.parametrize("n", [1, 2, 7, None, 65536])
def test_median(compiled: Compiled, tmp_path: Path, n: int | None) -> None:
    rules = rule("middle", "median", f"n = {n}" if n else "")
    table = run(compiled, tmp_path, rules, ["all", "middle"])
    n = n or 1000
    # Of one thread the times are in order already.
    places = [first + n // 2 for first in range(0, EVENTS - n + 1, n)]
    assert numbers(table, "middle") == [logged()[place] for place in places]
    just_before = ticks(of(table, "all"))[places]
    assert (ticks(of(table, "middle")) >= just_before).all()


@pytest.mark.parametrize("ending", ["close", "end", "kill"])
def test_periodic_counter(compiled: Compiled, tmp_path: Path, ending: str) -> None:
    period_ns = 100_000
    rules = rule("count", "periodic-counter", f"period = '{period_ns}ns'")
    table = run(compiled, tmp_path, rules, ["all", "count"], ending=ending)
    every, counts = ticks(of(table, "all")), of(table, "count")
    # An event of the counter comes between its number's event on "all" and the next one there.
    last = len(counts) - 1 if numbers(table, "count")[-1] == EVENTS else len(counts)
    assert numbers(table, "count")[-1] == EVENTS
    at, told = ticks(counts)[:last], counts["payload"].to_numpy()[:last]
    assert np.array_equal(np.searchsorted(every, at, side="right"), told)
    nanoseconds = of(table, "all")["time_ns"].to_numpy()
    tick = (nanoseconds[-1] - nanoseconds[0]) / (every[-1] - every[0])
    periods = np.diff(np.concatenate([every[:1], at])) * tick
    assert (periods[1:] > 0.999 * period_ns).all()
    # The event before was still within the period.
    before = (every[told - 2][1:] - at[:-1]) * tick
    assert (before < 1.001 * period_ns).all()
    # Nor was there a whole period behind the last.
    assert (every[-1] - at[-1]) * tick < 1.001 * period_ns


@pytest.mark.parametrize("ending", ["end", "kill"])
def test_fast_periodic_counter(compiled: Compiled, tmp_path: Path, ending: str) -> None:
    rules = rule("count", "fast-periodic-counter", "period = '1ms'")
    table = run(compiled, tmp_path, rules, ["all", "count"], ending=ending)
    every, counts = ticks(of(table, "all")), of(table, "count")
    told = counts["payload"].to_numpy()
    assert told[-1] == EVENTS
    assert (np.diff(told) > 0).all()
    # Who read the number came after the event on "all" before the last that it counts.
    assert (every[told - 1] <= ticks(counts)).all()


def test_handlers_count_all_threads_together(compiled: Compiled, tmp_path: Path) -> None:
    threads, count = 4, 100_000
    rules = (
        rule("tenth", "downsample")
        + rule("middle", "median")
        + rule("ends", "first-last")
        + rule("slow", "periodic-counter", "period = '1ms'")
        + rule("fast", "fast-periodic-counter")
    )
    channels = ["tenth", "middle", "ends", "slow", "fast"]
    table = run(compiled, tmp_path, rules, channels, count=count, threads=threads)
    assert len(numbers(table, "tenth")) == threads * count // 10
    assert len(numbers(table, "middle")) == threads * count // 1000
    assert len(numbers(table, "ends")) == 2
    lasts = [logged(count, SEED + thread)[-1] for thread in range(threads)]
    assert numbers(table, "ends")[-1] in lasts
    assert numbers(table, "slow")[-1] == numbers(table, "fast")[-1] == threads * count
