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
from tests.log.conftest import TARE_LOG, events, served
from tests.waiting import SECONDS, wait_for

TRIES = int(os.environ.get("TARE_KILLS", "2"))
THREADS = 2


def committed(page: Path) -> list[int]:
    """The number that each thread has logged last."""
    return [struct.unpack_from("q", page.read_bytes(), 128 * place)[0] for place in range(THREADS)]


@pytest.mark.parametrize("seed", range(TRIES))
def test_all_that_was_logged_before_kill_9(
    seed: int, compiled: Callable[[str], Path], tmp_path: Path
) -> None:
    assert kill_target(compiled("counting"), tmp_path, random.Random(seed)) > 0


@pytest.mark.parametrize("seed", range(5 * TRIES))
def test_what_a_killed_program_has_overwritten_is_counted(
    seed: int, compiled: Callable[[str], Path], tmp_path: Path
) -> None:
    assert kill_overwriting(compiled("counting"), tmp_path, random.Random(seed)) > 0


@pytest.mark.parametrize("seed", range(TRIES))
def test_another_collector_takes_over(
    seed: int, compiled: Callable[[str], Path], tmp_path: Path
) -> None:
    assert kill_collector(compiled("counting"), tmp_path, random.Random(seed))[0] > 0


def kill_target(counting: Path, folder: Path, chance: random.Random) -> int:
    """Kills the program; says how many events the file has, which are all that it logged."""
    page, file = folder / "page", folder / "events.log"
    program = [str(counting), str(page), str(THREADS)]
    with subprocess.Popen([TARE_LOG, "run", "--out", file, "--json", "--", *program]) as process:
        wait_for(lambda: page.stat().st_size and all(committed(page)))
        time.sleep(chance.uniform(0, 0.1))
        (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(child), signal.SIGKILL)
        assert process.wait(SECONDS) == 128 + signal.SIGKILL
    kept, lost = agree(file, page)
    assert lost == 0
    return kept


def kill_overwriting(counting: Path, folder: Path, chance: random.Random) -> int:
    """Kills the program while its collector is stopped; says how many events were lost. The file
    has what was not overwritten, and counts all the rest."""
    page, file = folder / "page", folder / "events.log"
    program = [str(counting), str(page), str(THREADS), "overwrite"]
    run = [TARE_LOG, "run", "--out", str(file), "--", *program]
    variables = os.environ | {"TARE_LOG_RING": "64K"}
    with subprocess.Popen(run, env=variables) as process:
        wait_for(lambda: page.stat().st_size and all(committed(page)))
        (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.send_signal(signal.SIGSTOP)
        before = committed(page)
        # More than a ring of 64 KiB holds.
        wait_for(lambda: all(b - a > 8192 for a, b in zip(before, committed(page), strict=True)))
        time.sleep(chance.uniform(0, 0.1))
        os.kill(int(child), signal.SIGKILL)
        wait_for(lambda: Path(f"/proc/{child}/stat").read_text().split()[2] == "Z")
        process.send_signal(signal.SIGCONT)
        assert process.wait(SECONDS) == 128 + signal.SIGKILL
    return agree(file, page)[1]


def kill_collector(counting: Path, folder: Path, chance: random.Random) -> tuple[int, int]:
    """Kills it and starts another; says how many events were kept, and how many were lost. What
    the program logs meanwhile is kept as far as there is room, and else counted."""
    page, file, socket = folder / "page", folder / "events.log", folder / "socket"
    collect = [TARE_LOG, "collect", "--socket", str(socket), "--out", str(file)]
    first = subprocess.Popen(collect)
    wait_for(file.exists)
    command = [str(counting), str(page), str(THREADS)]
    program = subprocess.Popen(command, env=os.environ | {"TARE_LOG": str(socket)})
    try:
        wait_for(lambda: page.stat().st_size and all(committed(page)))
        time.sleep(chance.uniform(0, 0.1))
        first.kill()
        first.wait()
        time.sleep(chance.uniform(0, 0.05))
        second = subprocess.Popen(collect)
        # What a program has in its memory dies with it, unless somebody has taken it over.
        wait_for(lambda: served(second.pid))
        time.sleep(chance.uniform(0, 0.1))
    finally:
        program.kill()
        program.wait()
    second.send_signal(signal.SIGINT)
    assert second.wait(SECONDS) == 0
    return agree(file, page)


def agree(file: Path, page: Path) -> tuple[int, int]:
    """Every event of each thread is in the file, once and in order, or counted as lost; says how
    many were kept and lost."""
    last, table, all_kept, all_lost = committed(page), events(file), 0, 0
    for place in range(THREADS):
        its = table.filter(pc.equal(table["channel"], f"thread {place}"))
        numbers = its["payload"].to_numpy()
        assert (np.diff(numbers) > 0).all()
        assert pc.unique(its["thread"]).to_pylist() == ["counting"]
        of_thread = table.filter(pc.equal(table["tid"], its["tid"][0]))
        lost = pc.sum(of_thread["lost"]).as_py() or 0
        # The event stands in the ring a moment before its number stands in the page.
        assert len(numbers) + lost - last[place] in (0, 1)
        all_kept, all_lost = all_kept + len(numbers), all_lost + lost
    return all_kept, all_lost
