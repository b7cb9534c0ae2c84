# SPDX-License-Identifier: Apache-2.0
"""What programs log from wherever they are is in the file, once and in order."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.log.conftest import TARE_LOG, Row, dump

Compiled = Callable[[str], Path]


def logged(
    compiled: Compiled, folder: Path, name: str, *arguments: object, **variables: str
) -> tuple[list[Row], str, dict[str, int]]:
    """The rows, the program's own output, and what tare-log counts."""
    file = folder / "events.log"
    command = [TARE_LOG, "run", "--out", file, "--json", "--", compiled(name), *arguments]
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env=os.environ | variables,
    )
    assert done.returncode == 0, done.stderr
    return dump(file), done.stdout, json.loads(done.stderr)


def payloads(rows: list[Row], channel: str) -> list[str]:
    return [row.payload for row in rows if row.channel == channel]


def test_payloads_and_handlers(compiled: Compiled, tmp_path: Path) -> None:
    rows, _, totals = logged(compiled, tmp_path, "payloads")
    edge = 1 << 45
    numbers = [0, -1, edge - 1, -edge, edge, 2**63 - 1, -(2**63), 43]
    assert payloads(rows, "numbers") == [str(number) for number in numbers]
    assert payloads(rows, 'texts, "quoted"') == ["hello, world", "", "x" * 4096]
    assert payloads(rows, "tenth") == [str(number) for number in range(0, 100, 10)]
    assert payloads(rows, "some") == [str(number) for number in range(100) if number % 8 < 3]
    assert not payloads(rows, "never")
    assert totals["events"] == len(rows)
    assert [row.ticks for row in rows] == sorted(row.ticks for row in rows)


def test_children_of_a_fork(compiled: Compiled, tmp_path: Path) -> None:
    rows, _, totals = logged(compiled, tmp_path, "forking")
    by_process: dict[int, list[str]] = {}
    for row in sorted(rows, key=lambda row: row.ticks):
        assert row.tid == row.pid
        by_process.setdefault(row.pid, []).append(f"{row.channel} {row.payload}")
    first, *children = by_process.values()
    assert first == ["family 1", "family 5"]
    assert sorted(children) == [["family 2"], ["family 3", "another 4"]]
    assert totals["programs"] == 3


def test_a_signal_handler_interrupts_its_own_thread(compiled: Compiled, tmp_path: Path) -> None:
    events = 300_000
    rows, out, _ = logged(compiled, tmp_path, "interrupted", events)
    assert payloads(rows, "outside") == [str(number) for number in range(1, events + 1)]
    inside = sorted(int(number) for number in payloads(rows, "inside"))
    assert inside == list(range(1, int(out) + 1))
    assert len(inside) > 100


def test_short_threads_share_rings(compiled: Compiled, tmp_path: Path) -> None:
    threads = 5_000
    rows, _, totals = logged(compiled, tmp_path, "churning", threads, TARE_LOG_RING="64K")
    assert sorted(int(row.payload) for row in rows) == list(range(threads))
    assert all(row.thread == "churning" and row.tid != row.pid for row in rows)
    assert (totals["lost"], totals["unserved"]) == (0, 0)


@pytest.mark.parametrize("policy", ["drop", "overwrite"])
def test_losses_are_counted_exactly(compiled: Compiled, tmp_path: Path, policy: str) -> None:
    events, bursts = 20_000, 20
    words = (events, bursts, policy)
    rows, _, totals = logged(compiled, tmp_path, "speed", *words, TARE_LOG_RING="64K")
    kept = [int(row.payload) for row in rows if row.channel]
    lost = sum(row.lost for row in rows)
    assert kept == sorted(set(kept))
    assert len(kept) + lost == events * bursts
    assert (totals["events"], totals["lost"]) == (len(kept), lost)
    assert lost > 0
    # What was logged last is lost where new events are, and there where old ones are.
    assert (kept[-1] == events * bursts - 1) or policy == "drop"
