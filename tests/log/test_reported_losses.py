# SPDX-License-Identifier: Apache-2.0
"""What cannot be kept is said and counted, and nothing else is damaged for it."""

import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.log.conftest import TARE_LOG, dump, ran, served
from tests.log.test_failures import NOBODY as AS_NOBODY
from tests.log.test_failures import (
    collecting,
    copied,
    ended,
    has_begun,
    open_folder,
    small_disk,
    started,
)
from tests.log.test_kills import THREADS
from tests.waiting import SECONDS, wait_for

__all__ = ["open_folder", "small_disk"]

Compiled = Callable[[str], Path]
NOBODY = 65_534
EVENTS = 600_000
LOGS = f"""
import sys
from tare.log import Channel
channel = Channel("numbers")
for number in range({EVENTS}):
    channel.log(number)
sys.exit(int(sys.argv[1]))
"""
# It has begun, and goes on until it is told to end.
GOES_ON = """
import pathlib, sys, time
from tare.log import Channel
folder, channel = pathlib.Path(sys.argv[1]), Channel("beat")
channel.log(1)
(folder / "begun").touch()
while not (folder / "end").exists() and folder.exists():
    time.sleep(0.01)
"""


@pytest.mark.parametrize(("code", "expected"), [(0, 1), (7, 7)])
def test_what_a_full_disk_did_not_take_is_counted(
    code: int, expected: int, small_disk: tuple[Path, list[str]]
) -> None:
    disk, inside = small_disk
    command = [*inside, TARE_LOG, "run", "--json", "--codec", "none", "--out", "events.log"]
    done = subprocess.run(
        [*command, "--", sys.executable, "-c", LOGS, str(code)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == expected
    *_, counts, last = done.stderr.splitlines()
    totals = json.loads(counts)
    rows = dump(disk / "events.log")
    assert totals["events"] == sum(row.channel == "numbers" and not row.lost for row in rows)
    assert totals["events"] + totals["lost"] + totals["unwritten"] == EVENTS
    assert totals["unwritten"] > 0
    assert f"events.log: {totals['unwritten']} remaining events were not written: No space" in last


def test_costs_take_no_files_place(tmp_path: Path) -> None:
    """Neither that of the events nor another's."""
    out, other = tmp_path / "events.log", tmp_path / "notes"
    other.write_text("notes\n")
    for file, why in ((out, "the file of events"), (other, "contains no costs")):
        done = subprocess.run(
            [TARE_LOG, "run", "--out", out, "--costs", file, "--", "true"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert why in done.stderr
        assert done.stderr.count("\n") == 1
    assert other.read_text() == "notes\n"


def test_programs_that_go_on_are_told(tmp_path: Path) -> None:
    command = '"$0" -c "$1" "$2" & while [ ! -e "$2/begun" ]; do sleep 0.01; done'
    run = [TARE_LOG, "run", "--out", tmp_path / "events.log"]
    with started(*run, "--", "sh", "-c", command, sys.executable, GOES_ON, tmp_path) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == (
            "tare-log: programs that continue without a collector: 1\n"
        )
        assert process.wait(SECONDS) == 0
        (tmp_path / "end").touch()
    assert len(dump(tmp_path / "events.log")) == 1


def test_programs_that_go_on_are_counted_where_their_end_is_not_written(tmp_path: Path) -> None:
    """The file may not grow any more when COMMAND ends."""
    out = tmp_path / "events.log"
    begun = 'while [ ! -e "$2/written" ]; do sleep 0.01; done'
    limit = 'prlimit --fsize="$(stat --format %s "$3")" --pid $PPID'
    run = [TARE_LOG, "run", "--json", "--out", out, "--", "sh", "-c"]
    script = f'"$0" -c "$1" "$2" & {begun}; {limit}'
    with started(*run, script, sys.executable, GOES_ON, tmp_path, out) as process:
        wait_for(lambda: (tmp_path / "begun").exists() and len(dump(out)) == 1)
        (tmp_path / "written").touch()
        assert process.wait(SECONDS) == 1
        # It has the same stderr, which ends with it.
        (tmp_path / "end").touch()
        assert process.stderr is not None
        *_, counts, last = process.stderr.read().splitlines()
    assert "File too large" in last
    assert json.loads(counts)["left"] == 1
    assert len(dump(out)) == 1


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    out = tmp_path / "events.log"
    run = [TARE_LOG, "run", "--out", out, "--", "sh", "-c", 'rm "$0"; cat', out]
    with started(*run, stdin=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stdin is not None
        assert process.stderr.readline() == (
            f"tare-log: --out {out}: the file was deleted or renamed; events are still written to"
            " it. Restart the collector for a new file\n"
        )
        process.stdin.close()
        assert process.wait(SECONDS) == 0


def test_a_socket_that_is_gone_is_told(tmp_path: Path) -> None:
    with collecting(tmp_path) as collector:
        (tmp_path / "socket").unlink()
        told = "the socket was deleted, so new programs cannot connect. Restart the collector\n"
        assert collector.stderr is not None
        assert collector.stderr.readline() == f"tare-log: {tmp_path}/socket: {told}"
        ended(collector)


@pytest.mark.parametrize(("program", "collector"), [("socket", ""), ("", "socket")])
def test_sockets_are_the_same_under_any_name(
    program: str, collector: str, compiled: Compiled, tmp_path: Path
) -> None:
    """One of both names it by the folder that it is in."""
    whole, out, page = str(tmp_path / "socket"), tmp_path / "events.log", tmp_path / "page"
    variables = os.environ | {"TARE_LOG": program or whole}
    counting = [compiled("counting"), page, THREADS, "drop"]
    with started(*counting, env=variables, cwd=tmp_path):
        wait_for(lambda: has_begun(page))
        collect = [TARE_LOG, "collect", "--socket", collector or whole, "--out", out]
        with started(*collect, cwd=tmp_path) as process:
            wait_for(lambda: served(process.pid))
            ended(process)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_sockets_of_killed_collectors_are_taken_away(open_folder: Path) -> None:
    """Not one that listens, nor one that has just come; nor what is none."""
    copied(open_folder, Path(TARE_LOG))
    folder = open_folder / "tare"
    kept = {"log-1.sock", "log-3.sock", "other.sock", "log-4.sock"}
    with ExitStack() as stack:
        folder.mkdir(0o700)
        for name in sorted(kept | {"log-2.sock"}):
            if name == "log-4.sock":
                (folder / name).touch()
                continue
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(str(folder / name))
            if name == "log-1.sock":
                listener.listen()
        for file in folder.iterdir():
            if file.name != "log-3.sock":
                os.utime(file, (0, 0))
        for path in (open_folder, folder, *folder.iterdir()):
            os.chown(path, NOBODY, NOBODY)
        variables = os.environ | {"XDG_RUNTIME_DIR": str(open_folder)}
        program = str(open_folder / "tare-log")
        run = [*AS_NOBODY, program, "run", "--out", "/dev/null", "--", "true"]
        subprocess.run(run, check=True, env=variables)
    assert {file.name for file in folder.iterdir()} == kept


def test_a_limit_of_file_sizes_is_an_error(compiled: Compiled, tmp_path: Path) -> None:
    """What the kernel sends beside it would end this program, and does end what it starts."""
    file = tmp_path / "events.log"
    ran(file, compiled("nested"), 2, 3_000)
    for words in (["export", "--to", "chrome"], ["export", "--to", "ctf"], ["recover"]):
        out = tmp_path / "out"
        done = subprocess.run(
            [TARE_LOG, *words, "--out", out, file],
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000)),
        )
        assert done.returncode == 1
        assert "File too large" in done.stderr
        assert list(tmp_path.iterdir()) == [file]
    look = f"{TARE_LOG} run --out {file} -- grep SigIgn /proc/self/status"
    ignored = subprocess.check_output(look.split(), text=True).split()[1]
    assert int(ignored, 16) >> 24 & 1 == 0
