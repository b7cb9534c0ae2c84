# SPDX-License-Identifier: Apache-2.0
"""Every match is a line of the file or counted as lost, however many there are."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.hook_command.service import HOOK, Start, child_of, rules
from tests.rights import may_make_namespaces
from tests.waiting import SECONDS, wait_for

SOURCE = Path(__file__).parents[2] / "bench" / "hook" / "matches.c"
JUMPS = Path(__file__).parents[1] / "hook" / "cases" / "siglongjmp.c"


@pytest.fixture
def matches(tmp_path: Path) -> list[str]:
    """A program whose threads make 1,000,000 matches per second, for some seconds, and say how
    many. With 0 seconds it goes on until its standard input ends."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    program = tmp_path / "matches"
    subprocess.run([compiler, "-O2", "-pthread", "-o", program, SOURCE], check=True)
    (tmp_path / "rules.toml").write_text(rules("needle"))
    return [str(program), "8", "1e6"]


def read(stats: str) -> tuple[int, dict[str, int]]:
    """The matches that were counted, and what became of their events."""
    all_of_it: dict[str, Any] = json.loads(stats.splitlines()[-1])
    return sum(function["matches"] for function in all_of_it["functions"]), all_of_it["events"]


def searched(events: Path, rules: Path, *program: str) -> tuple[int, int, dict[str, int]]:
    """Runs a program of `matches`; returns the matches that it made, those that were counted, and
    what became of their events."""
    options = ["--rules", str(rules), "--events", str(events), "--json"]
    done = subprocess.run(
        [HOOK, *options, "--", *program],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    return int(done.stdout.split()[0]), *read(done.stderr)


@pytest.mark.parametrize("file", ["events.jsonl", "/dev/full"])
def test_matches_of_many_threads_are_written_or_lost(
    file: str, matches: list[str], tmp_path: Path
) -> None:
    events = tmp_path / file
    made, counted, fates = searched(events, tmp_path / "rules.toml", *matches, "0.5")
    assert counted == made > 0
    assert fates["written"] + fates["lost"] == made
    if file == "/dev/full":
        assert fates["written"] == 0
        return
    times: dict[int, list[int]] = {}
    lines = events.read_bytes().splitlines()
    for line in lines:
        event = json.loads(line)
        assert event["keyword"] == "needle"
        times.setdefault(event["tid"], []).append(event["time_ns"])
    assert len(lines) == fates["written"] > 0
    # Of a thread. One that loses its CPU while it records an event may come late among others.
    assert all(mine == sorted(mine) for mine in times.values())


VIEWS = {
    "no /proc": ["--mount", "sh", "-c", 'umount --lazy /proc && exec "$@"', "sh"],
    "hidepid": [
        *("--fork", "--kill-child", "--pid", "--mount"),
        *("sh", "-c", 'mount -t proc -o hidepid=2 proc /proc && exec "$@"', "sh"),
    ],
    "chroot": [
        *("--mount", "sh", "-c"),
        'mount --rbind / "$0" && umount --lazy "$0/proc" && exec chroot "$0" "$@"',
    ],
}


@pytest.mark.parametrize("view", VIEWS)
def test_matches_of_a_program_that_sees_no_processes_are_written(
    view: str, matches: list[str], tmp_path: Path
) -> None:
    if not may_make_namespaces():
        pytest.skip("only root can make a namespace")
    events, root = tmp_path / "events", tmp_path / "root"
    root.mkdir()
    inside = ["unshare", *VIEWS[view], *([str(root)] if view == "chroot" else [])]
    program = [*inside, matches[0], "2", "1e5", "0.1"]
    made, counted, fates = searched(events, tmp_path / "rules.toml", *program)
    assert made > 0
    assert (counted, fates["written"], fates["lost"]) == (made, made, 0)
    assert len(events.read_bytes().splitlines()) == made


def test_who_takes_over_under_load_accounts_for_every_match(
    matches: list[str], tmp_path: Path, start: Start
) -> None:
    events = tmp_path / "events"
    own = ["--events", str(events)]
    rules_file = str(tmp_path / "rules.toml")
    hook = start(HOOK, "--rules", rules_file, *own, "--", *matches, "0", stdin=subprocess.PIPE)
    pid = child_of(hook)
    wait_for(lambda: events.stat().st_size > 1 << 20)
    hook.kill()
    hook.wait(SECONDS)
    before = events.stat().st_size
    other = start(HOOK, "--attach", str(pid), *own, "--json")
    wait_for(lambda: events.stat().st_size > before + (1 << 20))
    assert hook.stdin
    hook.stdin.close()
    hook.stdin = None
    _, said = other.communicate(timeout=SECONDS)
    assert other.returncode == 0
    assert hook.stdout
    made = int(hook.stdout.readline().split()[0])
    counted, fates = read(said)
    assert counted == made
    assert fates["written"] + fates["lost"] == made
    lines = events.read_bytes().splitlines()
    # What was in hand when the first one died is lost, or a line that it did not come to count.
    assert fates["written"] <= len(lines) <= made
    assert all(json.loads(line)["keyword"] == "needle" for line in lines)


def test_a_handler_that_jumps_away_ends_nothing(tmp_path: Path) -> None:
    program, events = tmp_path / "jumps", tmp_path / "events.jsonl"
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    subprocess.run([compiler, "-O2", "-o", program, JUMPS], check=True)
    (tmp_path / "rules.toml").write_text(rules("needle", "after"))
    options = ["--rules", str(tmp_path / "rules.toml"), "--events", str(events), "--json"]
    done = subprocess.run(
        [HOOK, *options, "--", program], capture_output=True, text=True, timeout=SECONDS, check=True
    )
    counted, fates = read(done.stderr)
    lines = events.read_text().splitlines()
    assert len(lines) == fates["written"] == counted - fates["lost"]
    assert json.loads(lines[-1])["keyword"] == "after"


@pytest.mark.exhaustive
def test_a_process_that_executes_itself_often_keeps_its_ring(tmp_path: Path) -> None:
    """More often than there are rings, within the time that looking for dead threads takes."""
    times = 280
    script = (
        "import os, socket, sys\n"
        "near, far = socket.socketpair()\n"
        "near.send(b'needle'), far.recv(9)\n"
        "left = int(sys.argv[1])\n"
        "if left: os.execv(sys.executable, [*sys.orig_argv[:-1], str(left - 1)])\n"
    )
    (tmp_path / "rules.toml").write_text(rules("needle"))
    options = ["--rules", str(tmp_path / "rules.toml"), "--events", str(tmp_path / "events")]
    program = ["python3", "-I", "-S", "-c", script, str(times - 1)]
    done = subprocess.run(
        [HOOK, *options, "--json", "--", *program], capture_output=True, text=True, check=True
    )
    counted, fates = read(done.stderr)
    assert counted == fates["written"] == times
