# SPDX-License-Identifier: Apache-2.0
"""Every language has the same policies: losses are counted to the last event."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.log.conftest import TARE_LOG, dump
from tests.log.languages import command

EVENTS, BURSTS = 20_000, 5


@pytest.mark.parametrize("policy", ["drop", "wait", "overwrite"])
@pytest.mark.parametrize("language", ["C++", "Rust", "Python"])
def test_what_a_full_ring_does(language: str, policy: str, tmp_path: Path) -> None:
    """The program that measures a call, with a ring that holds a fifth of a burst."""
    file, total = tmp_path / "events.log", EVENTS * BURSTS
    program = [*command(language, "speed"), str(EVENTS), str(BURSTS), policy]
    done = subprocess.run(
        [TARE_LOG, "run", "--out", str(file), "--json", "--", *program],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"TARE_LOG_RING": "64K"},
    )
    assert done.stdout.startswith("min ")
    rows = dump(file)
    kept = [int(row.payload) for row in rows if row.channel == "speed"]
    lost = sum(row.lost for row in rows)
    assert kept == sorted(set(kept))
    assert len(kept) + lost == total
    totals = json.loads(done.stderr)
    assert (totals["events"], totals["lost"]) == (len(kept), lost)
    assert kept[0] == 0 or policy == "overwrite"
    assert kept[-1] == total - 1 or policy == "drop"
    if policy == "wait":
        assert lost == 0
