# SPDX-License-Identifier: Apache-2.0
"""The handler id: an event is in the file when the call returns, whoever dies next."""

import json
import os
import random
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from tests.log.conftest import TARE_LOG, dump, events, stats
from tests.log.test_kills import THREADS, TRIES, committed
from tests.waiting import SECONDS, wait_for

Compiled = Callable[[str], Path]
RULES = "[[rule]]\nhandler = 'id'\n"
NOBODY = 65534


class Steps:
    """The program `stepping`, which logs when it is told."""

    def __init__(self, program: Path, socket: Path, *words: object, **options: int) -> None:
        self.process = subprocess.Popen(
            [str(word) for word in (program, *words)],
            env=os.environ | {"TARE_LOG": str(socket), "TARE_LOG_RING": "64K"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **options,  # type: ignore[call-overload]
        )

    def log(self, count: int) -> int:
        """Logs so many, and says how many that makes."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end(self) -> None:
        self.process.communicate()
        assert self.process.returncode == 0


@contextmanager
def collector(socket: Path, file: Path, *options: object) -> Iterator[subprocess.Popen[str]]:
    """A collector, which is killed in the end if it has not been ended."""
    words = [TARE_LOG, "collect", "--socket", socket, "--out", file, "--json", *options]
    process = subprocess.Popen([str(word) for word in words], stderr=subprocess.PIPE, text=True)
    try:
        wait_for(socket.exists)
        yield process
    finally:
        process.kill()
        process.wait()


def ended(process: subprocess.Popen[str]) -> dict[str, int]:
    """What a collector counts that is told to end."""
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    totals: dict[str, int] = json.loads(told.splitlines()[-1])
    return totals


def steps(file: Path) -> list[int]:
    return [int(row.payload) for row in dump(file) if row.channel == "steps"]


@pytest.mark.parametrize("victim", ["program", "collector", "both"])
@pytest.mark.parametrize("seed", range(TRIES))
def test_what_was_logged_is_in_the_file_whoever_is_killed(
    seed: int, victim: str, compiled: Compiled, tmp_path: Path
) -> None:
    """Nobody comes after the collector: what its victim leaves is all there is."""
    page, file, socket, rules = (tmp_path / name for name in ("page", "log", "socket", "rules"))
    rules.write_text(RULES)
    generator = random.Random(seed)
    with collector(socket, file, "--rules", rules) as collecting:
        counting = [str(compiled("counting")), str(page), str(THREADS)]
        program = subprocess.Popen(counting, env=os.environ | {"TARE_LOG": str(socket)})
        wait_for(lambda: page.stat().st_size and all(committed(page)))
        time.sleep(generator.uniform(0, 0.1))
        if victim != "program":
            collecting.kill()
            before = committed(page)
            # It goes on all the same.
            wait_for(lambda: all(map(int.__lt__, before, committed(page))))
        if victim == "both":
            time.sleep(generator.uniform(0, 0.05))
        program.kill()
        program.wait()
        last = committed(page)
    table = events(file)
    assert table["lost"].null_count == len(table)
    for place in range(THREADS):
        its = table.filter(pc.equal(table["channel"], f"thread {place}"))
        numbers = its["payload"].to_numpy()
        assert len(numbers) - last[place] in (0, 1)
        assert np.array_equal(numbers, np.arange(1, len(numbers) + 1))
        assert (np.diff(its["ticks"].to_numpy()) > 0).all()
        assert set(its["thread"].to_pylist()) == {"counting"}


def test_nothing_has_to_be_waited_for(compiled: Compiled, tmp_path: Path) -> None:
    """Each event is there at once, also when the collector is stopped."""
    file, socket = tmp_path / "log", tmp_path / "socket"
    with collector(socket, file) as collecting:
        program = Steps(compiled("stepping"), socket)
        assert program.log(1) == 1
        collecting.send_signal(signal.SIGSTOP)
        for count in range(2, 50):
            assert program.log(1) == count
            assert steps(file) == list(range(count))
        collecting.send_signal(signal.SIGCONT)
        program.end()
        totals = ended(collecting)
    assert (totals["events"], totals["deferred"], totals["lost"]) == (49, 0, 0)


def test_signals_do_not_keep_the_file_from_a_program(compiled: Compiled, tmp_path: Path) -> None:
    """A timer interrupts while the program waits for the collector's answer."""
    rules, count = tmp_path / "rules", 2_000
    rules.write_text("[[rule]]\nchannel = 'outside'\nhandler = 'id'\n")
    for turn in range(10):
        file = tmp_path / f"{turn}.log"
        command = [TARE_LOG, "run", "--rules", str(rules), "--out", str(file), "--json", "--"]
        done = subprocess.run(
            [*command, str(compiled("interrupted")), str(count), "0"],
            check=True,
            capture_output=True,
            text=True,
        )
        assert json.loads(done.stderr)["deferred"] == 0
        assert len([row for row in dump(file) if row.channel == "outside"]) == count


def test_another_collector_with_another_file(compiled: Compiled, tmp_path: Path) -> None:
    first, second, socket = tmp_path / "first", tmp_path / "second", tmp_path / "socket"
    with collector(socket, first) as collecting:
        program = Steps(compiled("stepping"), socket)
        program.log(10)
        collecting.kill()
        collecting.wait()
        program.log(10)
    with collector(socket, second) as collecting:
        wait_for(lambda: b"steps" in second.read_bytes())
        program.log(10)
        assert steps(second) == list(range(20, 30))
        totals = ended(collecting)
        assert totals["events"] == 10
    # It has ended by itself, and said so: what follows is kept for the next one.
    program.log(10)
    with collector(socket, second) as collecting:
        wait_for(lambda: len(steps(second)) == 20)
        program.end()
        totals = ended(collecting)
    assert (totals["events"], totals["deferred"]) == (10, 10)
    assert stats(second)["deferred"] == 10
    assert steps(first) == list(range(20))
    assert steps(second) == list(range(20, 40))


def test_a_programs_own_files_are_left_alone(compiled: Compiled, tmp_path: Path) -> None:
    """It closes descriptors that it knows nothing of, and uses their numbers."""
    file, socket, own = tmp_path / "log", tmp_path / "socket", tmp_path / "own"
    with collector(socket, file) as collecting:
        program = Steps(compiled("stepping"), socket, own)
        assert program.log(5) == 5
        assert program.log(0) == 5
        assert program.log(5) == 10
        assert steps(file) == list(range(10))
        program.end()
        assert ended(collecting)["deferred"] == 0
    assert own.read_bytes() == b""


def test_a_full_disk(compiled: Compiled, tmp_path: Path) -> None:
    """What cannot be written waits in the ring, and comes when there is room."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a small disk")
    script = f"mount -t tmpfs -o size=1m none {tmp_path} && echo && exec sleep 60"
    holder = subprocess.Popen(["unshare", "-m", "sh", "-c", script], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    disk = Path(f"/proc/{holder.pid}/root{tmp_path}")
    filler, file = disk / "filler", disk / "log"
    folder = Path(tempfile.mkdtemp())
    try:
        with collector(folder / "socket", file) as collecting:
            program = Steps(compiled("stepping"), folder / "socket")
            program.log(100)
            # As much as there is room for.
            subprocess.run(
                ["dd", "if=/dev/zero", f"of={filler}"], check=False, stderr=subprocess.DEVNULL
            )
            assert filler.stat().st_size > 1 << 19
            program.log(100)
            assert len(steps(file)) < 200
            filler.unlink()
            program.log(100)
            wait_for(lambda: len(steps(file)) == 300)
            program.end()
            totals = ended(collecting)
        assert sorted(steps(file)) == list(range(300))
        assert (totals["events"], totals["lost"]) == (300, 0), totals
        # At least those that had no room. A busy machine defers others as well: the file is asked
        # for once a second, and the answer waited for half of one.
        assert totals["deferred"] > 0
    finally:
        holder.kill()
        holder.wait()
        shutil.rmtree(folder)


def test_who_takes_over_on_a_full_disk_cuts_nothing_off(compiled: Compiled, tmp_path: Path) -> None:
    """What it could not write whole stays: behind that may stand what the program has written."""
    file, socket = tmp_path / "log", tmp_path / "socket"
    with collector(socket, file) as collecting:
        program = Steps(compiled("stepping"), socket)
        program.log(10)
        collecting.kill()
    # For the collector alone there is room for less than a block.
    limit = file.stat().st_size + 50
    command = ["prlimit", f"--fsize={limit}", "--", TARE_LOG, "collect", "--socket", str(socket)]
    # A write behind the limit fails, as Python would have it, and ends nobody.
    with subprocess.Popen([*command, "--out", str(file)], restore_signals=False) as collecting:
        try:
            wait_for(lambda: file.stat().st_size == limit)
            time.sleep(1)
            assert file.stat().st_size == limit
            program.log(10)
            assert steps(file) == list(range(20))
        finally:
            collecting.kill()
    program.end()


def test_a_limit_of_file_sizes(compiled: Compiled, tmp_path: Path) -> None:
    """The kernel ends a program that writes behind its limit; the file may be there already."""
    file, count = tmp_path / "log", 200_000
    limit, length = 220 << 20, 200 << 20
    handled = [str(compiled("handled")), str(count), "1", "1", "end", "all"]
    run = [TARE_LOG, "run", "--out", str(file), "--json"]
    run += ["--rules", str(tmp_path / "rules"), "--"]
    (tmp_path / "rules").write_text(RULES + "policy = 'wait'\n")
    subprocess.run([*run, "true"], check=True)
    os.truncate(file, length)
    limited = ["prlimit", f"--fsize={limit}", "--", *handled]
    done = subprocess.run(
        [*run, *limited],
        env=os.environ | {"TARE_LOG_RING": "64K"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    totals = json.loads(done.stderr)
    assert (totals["events"], totals["deferred"], totals["lost"]) == (count, count, 0)
    assert len(events(file)) == count


def test_a_program_of_another_user_gets_no_file(compiled: Compiled) -> None:
    """It is served by root's collector, but does not write into root's file."""
    if os.geteuid() != 0:
        pytest.skip("only root can run a program as somebody else")
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    socket, file = folder / "socket", folder / "log"
    try:
        shutil.copy(compiled("stepping"), folder)
        program = Steps(folder / "stepping", socket, user=NOBODY)
        program.log(10)
        with collector(socket, file) as collecting:
            wait_for(lambda: b"steps" in file.read_bytes())
            program.log(10)
            program.end()
            totals = ended(collecting)
        assert (totals["events"], totals["deferred"], totals["lost"]) == (20, 20, 0)
        assert steps(file) == list(range(20))
    finally:
        shutil.rmtree(folder)


def blocks(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Kind and bytes of each (docs/formats/log.md)."""
    while content:
        magic, kind, stored = struct.unpack_from("<4s4xHxxI", content)
        assert magic == b"TLBK"
        yield kind, content[: 96 + stored]
        content = content[96 + stored :]


def test_events_of_a_channel_that_the_file_does_not_name(
    compiled: Compiled, tmp_path: Path
) -> None:
    """So a collector may leave it that is killed before it could write the name."""
    file, socket, left = tmp_path / "log", tmp_path / "socket", tmp_path / "left"
    with collector(socket, file) as collecting:
        program = Steps(compiled("stepping"), socket)
        program.log(10)
        program.end()
        ended(collecting)
    channels = 2
    found = list(blocks(file.read_bytes()))
    assert any(kind == channels for kind, _ in found)
    left.write_bytes(b"".join(block for kind, block in found if kind != channels))
    recovered = tmp_path / "recovered"
    words = [TARE_LOG, "recover", str(left), "--out", str(recovered), "--json"]
    told = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    assert (told["events"], told["damaged"]) == (10, 0)
    for log in (left, recovered):
        rows = dump(log)
        assert [(row.channel, row.payload) for row in rows] == [("", str(n)) for n in range(10)]
        assert {row.pid for row in rows} == {program.process.pid}


def test_children_and_signal_handlers(compiled: Compiled, tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.write_text(RULES)
    for name, words in (("forking", []), ("interrupted", ["50000", "100"])):
        file = tmp_path / name
        run = [TARE_LOG, "run", "--rules", str(rules), "--json", "--out", str(file), "--"]
        run += [str(compiled(name)), *words]
        done = subprocess.run(run, check=True, capture_output=True, text=True)
        rows = dump(file)
        # A child that has no file in time has its events in the ring; one that has it logs there.
        assert json.loads(done.stderr)["deferred"] < len(rows)
        if name == "forking":
            assert sorted(int(row.payload) for row in rows) == [1, 2, 3, 4, 5]
            assert len({row.pid for row in rows}) == 3
            continue
        for channel, count in zip(("outside", "inside"), done.stdout.split(), strict=True):
            numbers = [int(row.payload) for row in rows if row.channel == channel]
            assert numbers == list(range(1, int(count) + 1))
