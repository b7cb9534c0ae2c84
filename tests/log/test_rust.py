# SPDX-License-Identifier: Apache-2.0
"""The examples of the Rust crate, which are programs as users write them."""

import json
import os
import subprocess
from pathlib import Path

from tests.log.conftest import TARE_LOG, dump
from tests.log.languages import example


def test_threads_that_wait_lose_nothing(tmp_path: Path) -> None:
    threads, events, file = 4, 50_000, tmp_path / "events.log"
    program = [str(example("threads")), str(threads), str(events)]
    done = subprocess.run(
        [TARE_LOG, "run", "--out", file, "--json", "--", *program],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"TARE_LOG_RING": "64K"},
    )
    rows = dump(file)
    by_thread: dict[int, list[int]] = {}
    for row in rows:
        if row.channel == "numbers" and row.tid != row.pid:
            by_thread.setdefault(row.tid, []).append(int(row.payload))
    assert sorted(by_thread.values()) == [
        list(range(place * events, (place + 1) * events)) for place in range(threads)
    ]
    main = [(row.channel, row.payload) for row in rows if row.tid == row.pid]
    assert main == [("work>", "7"), ("work<", "7"), ("numbers", "-2")]
    totals = json.loads(done.stderr)
    assert (totals["events"], totals["lost"]) == (threads * events + 3, 0)
