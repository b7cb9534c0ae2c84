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

from tare import running
from tare.errors import InputError
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
    return {program["pid"]: program for program in json.loads(done.stdout)["programs"]}


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


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A runtime directory of the test's own."""
    path = tmp_path / "runtime"
    path.mkdir(mode=0o700)
    for module in (running.directory, created_resources, leftovers):
        monkeypatch.setattr(module, "runtime_directory", lambda: path)
    return path


def test_sockets_of_killed_collectors_are_removed_and_printed(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    (directory / f"{PREFIX}link").symlink_to("/nonexistent")
    with socket.socket(socket.AF_UNIX) as dead, socket.socket(socket.AF_UNIX) as alive:
        dead.bind(str(directory / "log-1.sock"))
        alive.bind(str(directory / "log-2.sock"))
        alive.listen()
        (directory / "log-3.sock").write_text("no socket")
        (directory / "log-4.sock").symlink_to(directory / "log-2.sock")
        # Control groups that other tests leave are nobody's in particular.
        assert [path.name for path in remove_leftovers() if path.parent == directory] == [
            "log-1.sock"
        ]
        assert directory not in [path.parent for path in remove_leftovers()]
    assert {path.name for path in directory.iterdir()} == {
        "log-2.sock",
        "log-3.sock",
        "log-4.sock",
        f"{PREFIX}link",
    }


def test_socket_that_takes_the_name_of_a_dead_one_stays(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collector can start while the dead socket is examined."""
    path = directory / "log-1.sock"
    with socket.socket(socket.AF_UNIX) as dead, socket.socket(socket.AF_UNIX) as alive:
        dead.bind(str(path))
        alive.bind(str(directory / "hidden"))

        def no_listener(_: Path) -> bool:
            (directory / "hidden").replace(path)
            return False

        monkeypatch.setattr(leftovers, "_has_listener", no_listener)
        assert path not in remove_leftovers()
        assert path.is_socket()


def abandon(path: Path) -> None:
    """Makes a record that of a process which does not exist any more."""
    written = json.loads(path.read_text())
    path.write_text(json.dumps(written | {"owner_start": written["owner_start"] - 1}))


def test_what_a_dead_process_made_is_removed_and_what_a_living_one_made_is_listed(
    directory: Path,
) -> None:
    things = [directory / name for name in ("dead", "living", "stubborn")]
    records = []
    for thing in things:
        thing.mkdir()
        records.append(created_resources.record("container", thing.name, [("rmdir", str(thing))]))
    dead, living, stubborn = (record.path for record in records)
    abandon(dead)
    abandon(stubborn)
    (things[2] / "file").touch()
    assert {thing.name: thing.in_use for thing in created_resources.made_things()} == {
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
    record = created_resources.record("bridge", "thing", [("rmdir", str(thing))])
    subprocess.run(record.removal, check=True)
    assert not thing.exists()
    assert not record.path.exists()


def test_records_that_others_can_write_are_not_carried_out(directory: Path) -> None:
    record = created_resources.record("container", "thing", [("touch", str(directory / "done"))])
    abandon(record.path)
    record.path.parent.chmod(0o777)
    assert [*created_resources.remove_abandoned()] == []
    record.path.parent.chmod(0o700)
    (record.path.parent / "broken.json").write_text('{"type": 7}')
    assert [*created_resources.remove_abandoned()] == [record.path]
    assert (directory / "done").exists()


@pytest.mark.parametrize(
    ("attack", "fault"),
    [
        ("open", "mode 777 (expected 7"),
        ("link", "not a directory; remove it"),
        ("stranger", "owned by user 65534 (expected 0). Remove it, or set XDG_RUNTIME_DIR to a"),
    ],
)
def test_runtime_directory_that_others_can_change_is_ignored_with_a_warning(
    directory: Path, attack: str, fault: str
) -> None:
    record = created_resources.record("container", "thing", [("touch", str(directory / "done"))])
    abandon(record.path)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(directory / "log-1.sock"))
    if attack == "open":
        directory.chmod(0o777)
    elif attack == "link":
        directory.symlink_to(directory.rename(directory.with_name("elsewhere")))
    elif os.geteuid() == 0:
        os.chown(directory, 65534, 65534)
    else:
        pytest.skip("only root can give directories to another user")
    assert [*created_resources.remove_abandoned()] == []
    assert created_resources.made_things() == []
    for command in ("clean", "ps"):
        done = tare(command)
        assert done.returncode == 0
        assert done.stderr.startswith(f"warning: ignored what is in {directory}: {fault}")
        assert done.stderr.count("\n") == 1
    assert {path.name for path in directory.iterdir()} == {"environments", "log-1.sock"}
    with pytest.raises(InputError, match=re.escape(f"{directory}: {fault}")):
        created_resources.record("container", "other", [])


def test_records_reached_through_links_are_not_carried_out(directory: Path) -> None:
    record = created_resources.record("container", "thing", [("touch", str(directory / "done"))])
    abandon(record.path)
    elsewhere = record.path.rename(directory / "elsewhere")
    record.path.symlink_to(elsewhere)
    os.mkfifo(record.path.with_name("pipe.json"))
    assert [*created_resources.remove_abandoned()] == []
    record.path.unlink()
    elsewhere.rename(record.path)
    folder = record.path.parent
    folder.symlink_to(folder.rename(directory / "folder"))
    assert [*created_resources.remove_abandoned()] == []
    assert not (directory / "done").exists()
    with pytest.raises(InputError, match="environments: not a directory"):
        created_resources.record("container", "other", [])


def test_records_that_move_away_while_they_are_read_are_still_the_same_ones(
    directory: Path,
) -> None:
    """Another user put a directory with other commands in the place of the checked directory."""
    for name in ("a", "b"):
        command = ("touch", str(directory / f"done-{name}"))
        abandon(created_resources.record("container", name, [command]).path)
    folder = directory / "environments"
    removed = created_resources.remove_abandoned()
    assert next(removed).name == "a.json"
    folder.rename(directory / "moved")
    folder.mkdir()
    other = {"type": "", "name": "", "owner": 0, "owner_start": 0, "undo": [["touch", "bad"]]}
    (folder / "b.json").write_text(json.dumps(other).replace("bad", str(directory / "bad")))
    assert [path.name for path in removed] == ["b.json"]
    assert (directory / "done-b").exists()
    assert not (directory / "bad").exists()
    assert (folder / "b.json").exists()


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


def test_mount_point_of_another_user_is_neither_an_obstacle_nor_a_control_group(
    tmp_path: Path,
) -> None:
    """Fields and lines of /proc end with a blank and a line feed alone."""
    dead = subprocess.Popen(["true"])
    dead.wait()
    real, forged = (tmp_path / name / f"tare-{dead.pid}-1" for name in ("real", "forged"))
    for group in (real, forged):
        group.mkdir(parents=True)
    odd = f"/home/a\x1cb\u2028c\u2028x\u00a0{tmp_path}/forged\u00a0cgroup2\u00a0rw"
    mounts = tmp_path / "mounts"
    mounts.write_text(f"x {odd} fuse rw 0 0\nx {tmp_path}/real cgroup2 rw 0 0\n")
    assert [*remove_abandoned_cgroups(mounts)] == [real]
    assert forged.exists()
