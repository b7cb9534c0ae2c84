# SPDX-License-Identifier: Apache-2.0
"""What was logged before kill -9 is in the file."""

import os
import random
import signal
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from tests.log.conftest import TARE_LOG, events

TRIES = int(os.environ.get("TARE_KILLS", "2"))
THREADS = 2


def committed(page: Path) -> list[int]:
    """The number that each thread has logged last."""
    return [struct.unpack_from("q", page.read_bytes(), 128 * place)[0] for place in range(THREADS)]


@pytest.mark.parametrize("seed", range(TRIES))
def test_all_that_was_logged_before_kill_9(
    seed: int, compiled: Callable[[str], Path], tmp_path: Path
) -> None:
    page, file = tmp_path / "page", tmp_path / "events.log"
    counting = [str(compiled("counting")), str(page), str(THREADS)]
    with subprocess.Popen([TARE_LOG, "run", "--out", file, "--json", "--", *counting]) as process:
        wait_for(lambda: page.exists() and page.stat().st_size and all(committed(page)))
        time.sleep(random.Random(seed).uniform(0, 0.1))
        (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(child), signal.SIGKILL)
        assert process.wait(60) == 128 + signal.SIGKILL
    last = committed(page)
    table = events(file)
    assert table["lost"].null_count == len(table)
    for place in range(THREADS):
        is_its = pc.equal(table["channel"], f"thread {place}")
        numbers = table.filter(is_its)["payload"].to_numpy()
        # The event stands in the ring a moment before its number stands in the page.
        assert len(numbers) - last[place] in (0, 1)
        assert np.array_equal(numbers, np.arange(1, len(numbers) + 1))


@pytest.mark.parametrize("seed", range(TRIES))
def test_another_collector_takes_over(
    seed: int, compiled: Callable[[str], Path], tmp_path: Path
) -> None:
    """What the program logs meanwhile is kept as far as there is room, and else counted."""
    page, file, socket = tmp_path / "page", tmp_path / "events.log", tmp_path / "socket"
    generator = random.Random(seed)
    collect = [TARE_LOG, "collect", "--socket", str(socket), "--out", str(file)]
    first = subprocess.Popen(collect)
    wait_for(socket.exists)
    counting = [str(compiled("counting")), str(page), str(THREADS)]
    program = subprocess.Popen(counting, env=os.environ | {"TARE_LOG": str(socket)})
    try:
        wait_for(lambda: page.exists() and page.stat().st_size and all(committed(page)))
        time.sleep(generator.uniform(0, 0.1))
        first.kill()
        first.wait()
        time.sleep(generator.uniform(0, 0.05))
        second = subprocess.Popen(collect)
        time.sleep(0.1)
    finally:
        program.kill()
        program.wait()
    last = committed(page)
    time.sleep(0.1)
    second.send_signal(signal.SIGINT)
    assert second.wait(20) == 0
    table = events(file)
    for place in range(THREADS):
        its = table.filter(pc.equal(table["channel"], f"thread {place}"))
        numbers = its["payload"].to_numpy()
        assert (np.diff(numbers) > 0).all()
        assert set(its["thread"].to_pylist()) == {"counting"}
        of_thread = table.filter(pc.equal(table["tid"], its["tid"][0]))
        lost = pc.sum(of_thread["lost"]).as_py() or 0
        assert len(numbers) + lost - last[place] in (0, 1)


def wait_for(come: Callable[[], object]) -> None:
    limit = time.monotonic() + 20
    while not come():
        assert time.monotonic() < limit
        time.sleep(0.002)
