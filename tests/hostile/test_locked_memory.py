# SPDX-License-Identifier: Apache-2.0
"""A process that holds everybody who reads its memory, or asks the kernel what it has there, stops
no command of another user."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

import pytest
from tests.hook_command.service import HOOK, child_of, rules
from tests.hostile.conftest import ROOT, Compile, says
from tests.hostile.test_budgets import EVENTS, awaited, go_on, numbers
from tests.hostile.test_hanging_files import require_fuse, stopped
from tests.link.linked import LINK, PAIR
from tests.log.conftest import compiled
from tests.log.test_failures import collecting, ended
from tests.waiting import SECONDS, wait_for

from tare.native import native

__all__ = ["compiled"]

ATTACK = ["unshare", "--mount", sys.executable, "-B", "-m", "tests.hostile.attacks.locked_memory"]
LINKED = f"{PAIR}\nends = linked()\nprint(flush=True)\ninput()"


def require_held(reader: "subprocess.Popen[bytes]") -> None:
    """It waits in the kernel, and no signal but SIGKILL interrupts it."""

    def state() -> str:
        return Path(f"/proc/{reader.pid}/stat").read_text().rpartition(") ")[2][0]

    wait_for(lambda: state() == "D" or reader.poll() is not None)
    reader.kill()
    reader.communicate()
    if reader.returncode == 0:
        pytest.skip("this kernel reads the memory of such a process")


@contextmanager
def locked(folder: Path) -> "Iterator[tuple[subprocess.Popen[str], int, int]]":
    """The attack, its PID and the port of its connection."""
    require_fuse()
    files = folder / "files"
    files.mkdir()
    words = [*ATTACK, *map(str, (files, folder / "socket", copied_link(folder)))]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, cwd=ROOT) as attacker,
        stopped(attacker),
    ):
        pid, port = map(int, says(attacker).split())
        for name in ("cmdline", "maps"):
            require_held(subprocess.Popen(["cat", f"/proc/{pid}/{name}"], stdout=pipe))
        yield attacker, pid, port


def copied_link(folder: Path) -> Path:
    """The memory of a run of tare link with one program that has links, whose PID is in the name
    of the copy."""
    pipe = subprocess.PIPE
    command = [LINK, "--eager", "--", "/usr/bin/python3", "-c", LINKED]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as link:
        assert says(link) == ""
        program = child_of(link)
        name = "/memfd:tare-link-statistics (deleted)"
        files = Path(f"/proc/{link.pid}/fd").iterdir()
        (memory,) = (file for file in files if str(file.readlink()) == name)
        copy = folder / f"link.{program}"
        copy.write_bytes(memory.read_bytes())
        link.communicate("\n", timeout=SECONDS)
    return copy


def goes_on(attacker: "subprocess.Popen[str]") -> None:
    assert attacker.stdin is not None
    attacker.stdin.write("\n")
    attacker.stdin.flush()
    assert says(attacker) == "sent"


def output(*command: str) -> str:
    """What a command prints that ends: into a file, for a pipe has room for 64 KiB."""
    with TemporaryFile("w+") as printed, subprocess.Popen(command, stdout=printed) as process:
        wait_for(lambda: process.poll() is not None, f"the end of {command[0]}")
        assert process.returncode == 0
        printed.seek(0)
        return printed.read()


@pytest.mark.parametrize("comes", ["before", "after"])
def test_collector_serves_other_programs(
    comes: str, compiled: Callable[[str], Path], open_to_all: Path
) -> None:
    """The attack connects, or its collector has died `before`."""
    program = Path(shutil.copy(compiled("awaited"), open_to_all))

    def serve(attacker: "subprocess.Popen[str]", collector: "subprocess.Popen[str]") -> int:
        # Held again after a failure, a collector could not be ended.
        with stopped(attacker):
            goes_on(attacker)
            with awaited(program, "another") as victim:
                go_on(victim)
            ended(collector)
        return victim.pid

    if comes == "before":
        with locked(open_to_all) as (attacker, _, _), collecting(open_to_all) as serving:
            victim = serve(attacker, serving)
    else:
        with collecting(open_to_all) as serving, locked(open_to_all) as (attacker, _, _):
            victim = serve(attacker, serving)
    assert len(numbers(open_to_all / "events.log", victim)) == EVENTS


def test_lists_of_programs_are_printed(open_to_all: Path) -> None:
    with locked(open_to_all) as (_, pid, port):
        listed = output(sys.executable, "-m", "tare", "ps", "--json")
        commands = {
            program["command"]
            for program in json.loads(listed)["programs"]
            if program["pid"] == pid
        }
        assert commands == {f"{Path(sys.executable).resolve()} ..."}
        assert f"{pid} " in output(LINK, "ps")
        if Path(native("bin", "tare-map")).exists():
            command = [native("bin", "tare-map"), "--duration", "100ms", "--method", "poll"]
            assert f" {port} " in output(*command)


def test_tare_hook_follows_its_program_to_the_end(restricted: Compile, open_to_all: Path) -> None:
    """It asks of all processes whether they have its memory."""
    (open_to_all / "rules").write_text(rules("needle"))
    options = ["--rules", str(open_to_all / "rules"), "--events", str(open_to_all / "events")]
    pipe = subprocess.PIPE
    command = [HOOK, *options, "--", str(restricted("echoing"))]
    with (
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as hook,
        locked(open_to_all) as (attacker, _, _),
    ):
        assert says(hook) == "ready"
        pid = child_of(hook)
        hook.kill()
        hook.wait()
        attach = [HOOK, "--attach", str(pid), *options]
        with subprocess.Popen(attach, stderr=pipe, text=True) as second, stopped(attacker):
            assert second.stderr is not None
            assert f"process {pid}" in second.stderr.readline()
            assert hook.stdin is not None
            hook.stdin.close()
            wait_for(lambda: second.poll() is not None, "the end of tare hook")
            assert second.returncode == 0
