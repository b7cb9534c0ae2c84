# SPDX-License-Identifier: Apache-2.0
"""`tare ps` and `tare clean`, with real programs, collectors and attackers."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.in_process import tare
from tests.waiting import wait_for

from tare.native import native
from tare.running import created_resources, leftovers, remove_leftovers
from tare.running.cgroups import remove_abandoned_cgroups
from tare.samples.sql.spill import PREFIX

LOGS = "import sys; from tare.log import Channel; Channel('x').log(1); sys.stdin.readline()"


@contextmanager
def started(*words: object) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def programs() -> dict[int, dict[str, Any]]:
    done = tare("ps", "--json")
    assert done.returncode == 0
    return {one["pid"]: one for one in json.loads(done.stdout)["programs"]}


def child(process: "subprocess.Popen[bytes]") -> int:
    """The one program that it has started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    wait_for(children.read_text)
    return int(children.read_text().split()[0])


def test_hooked_and_logging_programs_are_listed_with_their_collectors(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nkeywords = ["never"]\n')
    hook = [native("bin", "tare-hook"), "--rules", rules, "--", "cat"]
    log = [native("bin", "tare-log"), "run", "--out", tmp_path / "events.log", "--"]
    with started(*hook) as hooking, started(*log, sys.executable, "-c", LOGS) as logging:
        hooked, logged = child(hooking), child(logging)
        wait_for(lambda: {hooked, logged} <= programs().keys())
        found = programs()
        assert (found[hooked]["kind"], found[hooked]["collector"]) == ("hook", hooking.pid)
        assert (found[logged]["kind"], found[logged]["collector"]) == ("log", logging.pid)
        assert found[hooked]["command"] == "cat"
        assert not {hooking.pid, logging.pid} & found.keys()
        table = tare("ps").stdout
        assert re.search(rf"^{hooked} +hook  \S+ \S+  {hooking.pid} +cat$", table, re.MULTILINE)
        hooking.send_signal(signal.SIGKILL)
        hooking.wait()
        wait_for(lambda: hooked not in programs() or programs()[hooked]["collector"] is None)


def test_child_that_inherited_a_segment_is_not_listed(tmp_path: Path) -> None:
    forks = LOGS.replace("sys.stdin.readline()", "import os; os.fork(); sys.stdin.readline()")
    log = [native("bin", "tare-log"), "run", "--out", tmp_path / "events.log", "--"]
    with started(*log, sys.executable, "-c", forks) as logging:
        parent = child(logging)
        children = Path(f"/proc/{parent}/task/{parent}/children")
        wait_for(children.read_text)
        inherited = int(children.read_text())
        assert parent in programs()
        assert inherited not in programs()
        os.kill(inherited, signal.SIGKILL)


def test_sockets_of_killed_collectors_are_removed_and_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (created_resources, leftovers):
        monkeypatch.setattr(module, "runtime_directory", lambda: tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"{PREFIX}link").symlink_to("/nonexistent")
    with socket.socket(socket.AF_UNIX) as dead, socket.socket(socket.AF_UNIX) as alive:
        dead.bind(str(tmp_path / "log-1.sock"))
        alive.bind(str(tmp_path / "log-2.sock"))
        alive.listen()
        (tmp_path / "log-3.sock").write_text("no socket")
        (tmp_path / "log-4.sock").symlink_to(tmp_path / "log-2.sock")
        # Control groups that other tests leave are nobody's in particular.
        assert [path.name for path in remove_leftovers() if path.parent == tmp_path] == [
            "log-1.sock"
        ]
        assert tmp_path not in [path.parent for path in remove_leftovers()]
    assert {path.name for path in tmp_path.iterdir()} == {
        "log-2.sock",
        "log-3.sock",
        "log-4.sock",
        f"{PREFIX}link",
    }


def abandon(path: Path) -> None:
    """Makes a record that of a process which does not exist any more."""
    written = json.loads(path.read_text())
    path.write_text(json.dumps(written | {"owner_start": written["owner_start"] - 1}))


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A runtime directory of the test's own."""
    for name in ("make_runtime_directory", "runtime_directory"):
        monkeypatch.setattr(created_resources, name, lambda: tmp_path)
    return tmp_path


def test_what_a_dead_process_made_is_removed_and_what_a_living_one_made_is_listed(
    directory: Path,
) -> None:
    things = [directory / name for name in ("dead", "living", "stubborn")]
    records = []
    for thing in things:
        thing.mkdir()
        records.append(created_resources.record("container", thing.name, [("rmdir", str(thing))]))
    dead, living, stubborn = (one.path for one in records)
    abandon(dead)
    abandon(stubborn)
    (things[2] / "file").touch()
    assert {one.name: one.in_use for one in created_resources.made_things()} == {
        "dead": False,
        "living": True,
        "stubborn": False,
    }
    table = tare("ps").stdout
    assert re.search(rf"^{os.getpid()} +container +living +in use$", table, re.MULTILINE)
    assert re.search(r" dead +left behind; remove it with tare clean$", table, re.MULTILINE)
    assert [*created_resources.remove_abandoned()] == [dead]
    assert [thing.exists() for thing in things] == [False, True, True]
    assert [path.exists() for path in (dead, living, stubborn)] == [False, True, True]
    (things[2] / "file").unlink()
    assert [*created_resources.remove_abandoned()] == [stubborn]


def test_one_command_removes_a_thing_and_its_record(directory: Path) -> None:
    thing = directory / "a thing"
    thing.mkdir()
    one = created_resources.record("bridge", "thing", [("rmdir", str(thing))])
    subprocess.run(one.removal, check=True)
    assert not thing.exists()
    assert not one.path.exists()


def test_records_that_others_can_write_are_not_carried_out(directory: Path) -> None:
    one = created_resources.record("container", "thing", [("touch", str(directory / "done"))])
    abandon(one.path)
    one.path.parent.chmod(0o777)
    assert [*created_resources.remove_abandoned()] == []
    one.path.parent.chmod(0o700)
    (one.path.parent / "broken.json").write_text('{"type": 7}')
    assert [*created_resources.remove_abandoned()] == [one.path]
    assert (directory / "done").exists()


# Enters a control group of its own, as each command of a run does, and waits.
ENTERS = """
from tare.lab.processes.supervisor import Cgroups
groups = Cgroups.usable()
print(groups.enter() if groups else "", flush=True)
input()
"""


def test_control_groups_of_a_killed_supervisor_are_removed_where_nothing_runs() -> None:
    with (
        subprocess.Popen(
            [sys.executable, "-c", ENTERS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as supervisor,
        started("cat") as other,
    ):
        assert supervisor.stdout is not None
        empty = Path(supervisor.stdout.readline().strip())
        try:
            if empty == Path():
                pytest.skip("no control group can be made here")
            used = empty.with_name(f"tare-{supervisor.pid}-0")
            mine = empty.with_name(f"tare-{os.getpid()}-0")
            named = empty.with_name(f"tare-{supervisor.pid}-x")
            for group in (used, mine, named):
                group.mkdir()
            (used / "cgroup.procs").write_text(str(other.pid))
            remove_leftovers()
            assert empty.exists()
        finally:
            supervisor.kill()
        supervisor.wait()
        remove_leftovers()
        assert [group.exists() for group in (empty, used, mine, named)] == [False, True, True, True]
        mine.rmdir()
        named.rmdir()
    remove_leftovers()
    assert not used.exists()


def test_control_groups_of_others_and_deeply_nested_ones_are_no_obstacle(tmp_path: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    mounts = tmp_path / "mounts"
    mounts.write_text(f"x {tmp_path} cgroup2 rw 0 0\nx {tmp_path}/none cgroup rw 0 0\n")
    (tmp_path / "link").symlink_to(tmp_path / "away")
    (tmp_path / "away").mkdir()
    name = f"tare-{dead.pid}-1"
    (tmp_path / f"tare-{dead.pid}-2").symlink_to(tmp_path / "away")
    strangers = tmp_path / "stranger" / name
    strangers.mkdir(parents=True)
    deep = tmp_path / ("d/" * 1500)
    # Python's own ways to make and remove folders call themselves for each one.
    subprocess.run(["mkdir", "-p", deep / name], check=True)
    removes = [deep / name]
    if os.geteuid() == 0:
        os.chown(strangers, 65534, 65534)
    else:
        removes.append(strangers)
    assert sorted(remove_abandoned_cgroups(mounts)) == sorted(removes)
    assert strangers.exists() == (os.geteuid() == 0)
    assert (tmp_path / f"tare-{dead.pid}-2").is_symlink()
    subprocess.run(["rm", "-r", tmp_path / "d"], check=True)
