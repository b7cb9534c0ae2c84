# SPDX-License-Identifier: Apache-2.0
"""Whose events they are, and that none is missing, where rings are full, reused or not there."""

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.log.conftest import TARE_LOG, Row, count, dump, ran, stats
from tests.log.jvm import LOGGING, those_from
from tests.log.test_failures import collecting, ended, started
from tests.waiting import SECONDS, wait_for

Compiled = Callable[[str], Path]
SMALL = {"TARE_LOG_RING": "64K"}


def drained_later(folder: Path, *program: object) -> list[Row]:
    """What a collector has that comes when the program has said "full"; the program
    goes on when the ring is empty."""
    file = folder / "events.log"
    variables = os.environ | SMALL | {"TARE_LOG": str(folder / "socket")}
    with started(*program, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "full\n"
        with collecting(folder, "events.log") as collector:
            # Room for what comes: the ring holds about 4,000.
            wait_for(lambda: count(file) > 3_000)
            running.communicate("\n", timeout=SECONDS)
            assert running.returncode == 0
            ended(collector)
            return dump(file)


def test_each_thread_has_its_events_where_old_ones_are_overwritten(
    compiled: Compiled, tmp_path: Path
) -> None:
    file = tmp_path / "events.log"
    totals = ran(file, compiled("whose"), "turns", **SMALL)
    rows = dump(file)
    events = [row for row in rows if row.channel == "events"]
    assert all(row.payload == str(row.tid) for row in events)
    assert len(events) + sum(row.lost for row in rows) == 20 * 30_010
    assert totals["lost"] > 0


def test_losses_are_those_of_the_thread_that_had_them(compiled: Compiled, tmp_path: Path) -> None:
    rows = drained_later(tmp_path, compiled("whose"), "ended")
    by_thread: dict[str, Counter[str]] = {"first": Counter(), "second": Counter()}
    for row in rows:
        by_thread[row.thread]["lost"] += row.lost
        by_thread[row.thread]["kept"] += row.lost == 0
    assert by_thread["first"]["lost"] > 900
    assert by_thread["first"].total() == 5_000
    assert by_thread["second"] == {"kept": 10, "lost": 0}


def test_a_last_event_without_room_takes_no_thread_with_it(
    compiled: Compiled, tmp_path: Path
) -> None:
    rows = drained_later(tmp_path, compiled("whose"), "closed")
    assert {row.thread for row in rows} == {"whose"}
    assert [row.payload for row in rows if row.channel == "other"] == ["1"]
    assert sum(row.lost for row in rows) == 1
    assert len([row for row in rows if row.channel == "events"]) == 4_097


def test_threads_that_begin_together_have_one_segment(compiled: Compiled, tmp_path: Path) -> None:
    file, processes, threads = tmp_path / "events.log", 50, 8
    again = f'for n in $(seq {processes}); do "$0" {threads}; done'
    totals = ran(file, Path("sh"), "-c", again, compiled("together"))
    assert (totals["events"], totals["lost"]) == (processes * threads, 0)
    assert stats(file)["processes"] == processes


def test_threads_of_a_new_child_wait_for_its_segment(compiled: Compiled, tmp_path: Path) -> None:
    file = tmp_path / "events.log"
    totals = ran(file, compiled("whose"), "crowd")
    assert (totals["events"], totals["lost"], totals["unserved"]) == (80_000, 0, 0)
    assert Counter(row.payload for row in dump(file)) == {str(n): 80 for n in range(1_000)}


def test_events_without_a_ring_are_counted(compiled: Compiled, tmp_path: Path) -> None:
    """Also those of a signal handler that interrupts an event."""
    file = tmp_path / "events.log"
    command = [TARE_LOG, "run", "--out", file, "--", compiled("whose"), "cornered"]
    logged = int(subprocess.check_output([str(word) for word in command], env=os.environ | SMALL))
    (end,) = stats(file)["ends"]
    rows = dump(file)
    kept = len([row for row in rows if row.channel == "events"])
    assert kept + sum(row.lost for row in rows) + end["unserved"] == logged


def test_discarded_events_need_no_ring(compiled: Compiled, tmp_path: Path) -> None:
    totals = ran(tmp_path / "events.log", compiled("whose"), "many", **SMALL)
    assert (totals["events"], totals["unserved"]) == (1_024, 6)


@pytest.mark.parametrize("java", those_from(21), indirect=True)
def test_a_virtual_thread_keeps_its_events_after_a_loss(java: list[str], tmp_path: Path) -> None:
    single_carrier = "-Djdk.virtualThreadScheduler.parallelism=1"
    program = [*java, single_carrier, LOGGING, "carried"]
    rows = drained_later(tmp_path, *program)
    events = [row for row in rows if row.channel == "carried"]
    assert Counter(row.thread for row in events if int(row.payload) >= 10_000) == {"second": 100}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a program away")
def test_a_program_with_more_rights_does_not_listen(compiled: Compiled, tmp_path: Path) -> None:
    """Who starts it does not say where its events go."""
    given = tmp_path / "given"
    shutil.copy(compiled("payloads"), given)
    os.chown(given, 65_534, 65_534)
    given.chmod(0o4755)
    totals = ran(tmp_path / "events.log", given)
    assert (totals["programs"], totals["events"]) == (0, 0)
