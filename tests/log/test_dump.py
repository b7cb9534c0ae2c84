# SPDX-License-Identifier: Apache-2.0
"""What `tare log dump` leaves out when it is asked to."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.log.conftest import TARE_LOG, Row, dump, ran


@pytest.fixture(scope="module")
def file(compiled: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Spans of two threads, of which much is lost."""
    file = tmp_path_factory.mktemp("dump") / "events.log"
    ran(file, compiled("nested"), 2, 6_000, 0, "lose", TARE_LOG_RING="64K")
    return file


def filtered(file: Path, *options: str) -> list[int]:
    """The ticks of what is printed."""
    out = subprocess.run(
        [TARE_LOG, "dump", file, *options], check=True, capture_output=True, text=True
    ).stdout
    return [int(row["ticks"]) for row in csv.DictReader(io.StringIO(out))]


def ticks(rows: list[Row], is_wanted: Callable[[Row], bool]) -> list[int]:
    found = [row.ticks for row in rows if is_wanted(row)]
    assert 0 < len(found) < len(rows)
    return found


def test_channels_match_with_their_whole_name_and_losses_stay(file: Path) -> None:
    rows = dump(file)
    assert any(row.lost for row in rows)
    wanted = ticks(rows, lambda row: row.lost > 0 or row.channel in {"work tin", "go"})
    assert filtered(file, "--channel", "work t?in|g.") == wanted


def test_threads_match_by_number_and_name(file: Path) -> None:
    rows = dump(file)
    tid = rows[-1].tid
    assert filtered(file, "--thread", str(tid)) == ticks(rows, lambda row: row.tid == tid)
    assert filtered(file, "--thread", "nested") == [row.ticks for row in rows]
    assert not filtered(file, "--thread", "nest")


def test_times_are_since_the_epoch_or_since_the_first_event(file: Path) -> None:
    rows = dump(file)
    times = sorted(row.time_ns for row in rows if not row.lost)
    first, begin, end = times[0], times[len(times) // 3], times[len(times) // 2]
    expected = ticks(rows, lambda row: begin <= row.time_ns < end)
    assert filtered(file, "--from", str(begin), "--to", str(end)) == expected
    after = [f"{time - first}ns" for time in (begin, end)]
    assert filtered(file, "--from", after[0], "--to", after[1]) == expected
    assert filtered(file, "--from", str(begin)) == ticks(rows, lambda row: row.time_ns >= begin)


def test_filters_that_no_event_fits_are_told(file: Path) -> None:
    def told(*options: str) -> str:
        command = [str(TARE_LOG), "dump", str(file), *options]
        return subprocess.run(command, check=True, capture_output=True, text=True).stderr

    nothing = "tare-log: no event matches --channel, --from\n"
    assert told("--channel", "abs.nt", "--from", "1s") == nothing
    assert told("--channel", "go") == told() == ""


def test_losses_stand_between_what_was_logged_before_and_after(file: Path) -> None:
    """Each with the times of its first and its last event."""
    out = subprocess.run(
        [TARE_LOG, "dump", file, "--format", "jsonl"], check=True, capture_output=True
    ).stdout
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["ticks"] for row in rows] == filtered(file)
    before: dict[int, int] = {}
    after: dict[int, int] = {}
    losses = 0
    for row in rows:
        thread = row["tid"]
        if "lost" in row:
            first, last = row["first_ticks"], row["last_ticks"]
            assert before.get(thread, 0) < first <= last
            assert (first == last) <= (row["lost"] == 1)
            after[thread] = last
            losses += 1
        else:
            assert row["ticks"] > after.get(thread, 0)
            before[thread] = row["ticks"]
    assert losses == sum(row.lost > 0 for row in dump(file)) > 0


def test_a_name_that_was_cut_within_a_letter_is_kept_up_to_it(tmp_path: Path) -> None:
    """The kernel has room for fifteen bytes."""
    file = tmp_path / "events.log"
    script = "from tare.log import Channel\nopen('/proc/self/comm', 'w').write('ä' * 8)\n"
    ran(file, Path(sys.executable), "-c", script + "Channel('all').log(1)")
    assert [row.thread for row in dump(file)] == ["ä" * 7]
    assert len(filtered(file, "--thread", "ä{7}")) == 1
