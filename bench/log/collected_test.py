# SPDX-License-Identifier: Apache-2.0
import subprocess
from pathlib import Path

import pytest
from bench.log.built import built
from bench.log.collected import Collected

EVENTS = 200_000


@pytest.fixture
def collected(tmp_path: Path) -> Collected:
    found = Collected(tmp_path / "some")
    words = found.around([str(built(tmp_path, "calls.c")), "tare", "wait"])
    subprocess.run(words, input=f"{EVENTS}\n", text=True, check=True, stdout=subprocess.DEVNULL)
    return found


def test_events_are_counted_in_the_file(collected: Collected) -> None:
    assert collected.kept(EVENTS) == EVENTS
    assert collected.complete(EVENTS) == "all of 200,000 events in the file"
    assert collected.counters()["events"] == EVENTS
    with pytest.raises(SystemExit, match="200001 logged, 200000 kept, 0 lost"):
        collected.kept(EVENTS + 1)


def test_a_block_that_cannot_be_read_is_missed(collected: Collected) -> None:
    file = collected.name.with_suffix(".log")
    bytes_ = bytearray(file.read_bytes())
    # Readings of the clocks stand between events: more than one place, and some are of events.
    for eighth in range(1, 8):
        bytes_[len(bytes_) * eighth // 8] ^= 1
    file.write_bytes(bytes_)
    with pytest.raises(SystemExit, match="200000 logged, "):
        collected.kept(EVENTS)
    file.write_bytes(b"")
    with pytest.raises(SystemExit, match="neither a file of tare log"):
        collected.kept(EVENTS)


def test_lost_is_not_complete(collected: Collected, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Collected, "_found", lambda _: {"events": EVENTS - 7, "lost": 7})
    assert collected.kept(EVENTS) == EVENTS - 7
    with pytest.raises(SystemExit, match="200000 logged, 7 of them lost"):
        collected.complete(EVENTS)
