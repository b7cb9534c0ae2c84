# SPDX-License-Identifier: Apache-2.0
import os
import signal
import subprocess
from pathlib import Path

import pytest
from bench.log.build import build_program
from bench.log.collected import Collected
from tests.waiting import SECONDS

EVENTS = 200_000


@pytest.fixture
def collected(tmp_path: Path) -> Collected:
    found = Collected(tmp_path / "some")
    words = found.around([str(build_program(tmp_path, "calls.c")), "tare", "wait"])
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


def test_lost_is_not_complete(tmp_path: Path) -> None:
    """Events are lost while the collector is stopped: many more than its ring has room for."""
    collected = Collected(tmp_path / "lossy")
    words = collected.around([str(build_program(tmp_path, "calls.c")), "tare"])
    variables, pipe = os.environ | {"TARE_LOG_RING": "64K"}, subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, env=variables) as collector:
        assert collector.stdin is not None
        assert collector.stdout is not None
        try:
            for events, signal_after in ((1, signal.SIGSTOP), (EVENTS, signal.SIGCONT)):
                print(events, file=collector.stdin, flush=True)
                assert collector.stdout.readline()
                collector.send_signal(signal_after)
            collector.stdin.close()
            assert collector.wait(SECONDS) == 0
        finally:
            collector.kill()
    logged = EVENTS + 1
    kept = collected.kept(logged)
    assert 0 < kept < logged
    with pytest.raises(SystemExit, match=f"{logged} logged, {logged - kept} of them lost"):
        collected.complete(logged)
