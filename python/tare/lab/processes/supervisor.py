# SPDX-License-Identifier: Apache-2.0
"""Starts and stops every process of an experiment; none of them outlives tare.

It runs as a process of its own, with the standard library alone, in its own session, so that
Ctrl-C does not reach it. It reads commands and writes events, one JSON object a line; when the
pipe from tare closes, for whatever reason, it stops everything that descends from it and leaves,
within `LIMIT_S`.
"""

import ctypes
import itertools
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
PR_GET_CHILD_SUBREAPER = 37
LIMIT_S = 4.5
UNDO_LIMIT_S = 4.0
UNDO_FROM_S = 1.0
"""A command that has something to undo is killed then: what it did later would stay."""
POLL_S = 0.02


@dataclass
class Started:
    """One command that was started, at the head of its own process group."""

    process: "subprocess.Popen[bytes]"
    stop_signal: int
    grace_s: float
    cgroup: Path | None
    container: tuple[Path, int] | None = None
    """The control group where its processes are, and the one process there that is not its own."""
    undo: Callable[[], "subprocess.Popen[bytes]"] | None = None
    """Starts what undoes it elsewhere."""
    spared: list[int] = field(default_factory=list)
    """Processes that this will end, with their descendants."""
    used_ns: int = 0
    """CPU time of the command itself and of the children it waited for, once it has ended."""

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def runs(self) -> bool:
        return self.process.returncode is None


@dataclass
class Ending:
    """One command being stopped: the command itself is asked, then its family, then killed."""

    keep: bool = False
    """Whether the command can still be undone when it has ended."""
    begun: float = field(default_factory=time.monotonic)
    family_asked: bool = False
    killed: bool = False


class Supervisor:
    """The state of the supervisor: what was started and what is being stopped."""

    def __init__(self, commands: int, events: int) -> None:
        self.commands, self.events = commands, events
        self.cgroups = Cgroups.usable()
        self.started: dict[str, Started] = {}
        self.endings: dict[str, Ending] = {}
        self.pending = b""
        self.over = False

    def serve(self) -> None:
        """Obeys until the pipe closes or SIGTERM comes; then stops everything."""
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "over", True))
        with selectors.DefaultSelector() as selector:
            selector.register(self.commands, selectors.EVENT_READ)
            selector.register(wake_read, selectors.EVENT_READ)
            self.tell(event="up", cgroup=self.cgroups.kind if self.cgroups else None)
            while not self.over:
                ready = [key.fd for key, _ in selector.select(POLL_S if self.endings else None)]
                if wake_read in ready:
                    os.read(wake_read, 4096)
                self.reap()
                if self.commands in ready:
                    self.read()
                for name in list(self.endings):
                    self.go_on_ending(name)
        self.stop_everything()

    def read(self) -> None:
        data = os.read(self.commands, 65536)
        self.over = self.over or not data
        *lines, self.pending = (self.pending + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            getattr(self, f"do_{message.pop('do')}")(**message)

    def tell(self, **event: Any) -> None:
        try:
            os.write(self.events, json.dumps(event).encode() + b"\n")
        except OSError:  # nobody listens any more
            self.over = True

    def do_start(
        self,
        *,
        name: str,
        command: list[str],
        directory: str,
        environment: dict[str, str],
        log: str,
        output: str | None,
        cpus: list[int],
        stop_signal: str,
        grace_s: float,
        undo: list[str] | None = None,
        container: list[Any] | None = None,
    ) -> None:
        """Starts a command; its descendants inherit the CPUs and the cgroup set for the fork."""
        everywhere = os.sched_getaffinity(0)
        group = self.cgroups.enter() if self.cgroups else None
        try:
            os.sched_setaffinity(0, cpus)
            with Path(log).open("ab") as errors, Path(output or os.devnull).open("wb") as results:
                process = subprocess.Popen(
                    command,
                    cwd=directory,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=results if output else errors,
                    stderr=errors,
                    process_group=0,
                )
        except (OSError, ValueError) as error:  # ValueError: a zero byte, a name with "="
            what = getattr(error, "filename", None) or command[0]
            why = getattr(error, "strerror", None) or error
            self.tell(event="failed", name=name, error=f"{what}: {why}")
            return
        finally:
            os.sched_setaffinity(0, everywhere)
            if self.cgroups:
                self.cgroups.leave()
        number = int(signal.Signals[f"SIG{stop_signal}"])
        self.started[name] = Started(process, number, grace_s, group)
        if container:
            folder, first = container
            self.started[name].container = Path(folder), int(first)
        if undo:
            self.started[name].undo = partial(
                run_undo, undo, directory=directory, environment=environment, log=log
            )
        self.tell(event="started", name=name, pid=process.pid)

    def do_spare(self, name: str, pids: list[int]) -> None:
        self.started[name].spared = pids

    def do_stop(self, name: str, keep: bool = False) -> None:
        self.endings[name] = Ending(keep)
        started = self.started[name]
        if started.runs:
            send(started.stop_signal, [started.pid])

    def go_on_ending(self, name: str) -> None:
        started, ending = self.started[name], self.endings[name]
        family = self.family(started)
        self.reap()
        # Until it is reaped, other threads than its first can still run.
        if not family and not started.runs:
            del self.endings[name]
            if not ending.keep:
                del self.started[name]
            if self.cgroups:
                self.cgroups.remove()
            self.tell(event="stopped", name=name, killed=ending.killed)
            return
        age = time.monotonic() - ending.begun
        if age > started.grace_s:
            ending.killed = True
            send(signal.SIGKILL, family)
        elif not ending.family_asked and (not started.runs or age > started.grace_s / 2):
            ending.family_asked = True
            send(started.stop_signal, family)

    def do_sweep(self) -> None:
        """Kills what descends from here and belongs to no command: daemons that broke away."""
        mine = {pid for started in self.started.values() for pid in self.family(started)}
        left = [pid for pid in descendants(os.getpid()) if pid not in mine]
        send(signal.SIGKILL, left)
        self.tell(event="swept", name="", count=len(left))

    def do_family(self, name: str) -> None:
        """Tells the processes of a command and the CPU time of all that it started so far."""
        started = self.started[name]
        family = self.family(started)
        used = self.cgroups.cpu_ns(started.cgroup) if self.cgroups and started.cgroup else None
        self.tell(
            event="family",
            name=name,
            pids=family,
            cpu_ns=started.used_ns + tree_cpu_ns(family) if used is None else used,
        )

    def family(self, started: Started) -> list[int]:
        """Living processes of a command: its group, its descendants, its cgroup, its container."""
        everyone = living()
        here = descendants(os.getpid(), everyone)
        family = {pid for pid, parent_group in here.items() if parent_group[1] == started.pid}
        family.update(pid for pid in descendants(started.pid, everyone) if pid in here)
        if started.cgroup:
            family.update(pid for pid in processes_in(started.cgroup) if pid in here)
        if started.container:
            folder, first = started.container
            family.update(pid for pid in processes_in(folder) if pid in here and pid != first)
        return sorted(family)

    def reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return
                for name, started in self.started.items():
                    if started.pid == pid:
                        started.process.returncode = os.waitstatus_to_exitcode(status)
                        started.used_ns = round((usage.ru_utime + usage.ru_stime) * 1e9)
                        self.tell(event="exited", name=name, code=started.process.returncode)

    def stop_everything(self) -> None:
        """Asks every command, then every descendant, then kills; returns when nothing is left.

        What undoes a command elsewhere begins when the command has ended, and is killed last.
        """
        begun = time.monotonic()
        undoing: list[subprocess.Popen[bytes]] = []
        to_undo = [(started, started.undo) for started in self.started.values() if started.undo]
        for started in self.started.values():
            if started.runs:
                send(started.stop_signal, [started.pid])
        all_asked = False
        while (age := time.monotonic() - begun) < LIMIT_S:
            self.reap()
            for started, undo in [pair for pair in to_undo if not pair[0].runs]:
                to_undo.remove((started, undo))
                with suppress(OSError, ValueError):
                    undoing.append(undo())
            left = list(descendants(os.getpid()))
            if not left and not to_undo:
                break
            if age > UNDO_FROM_S:
                send(signal.SIGKILL, [started.pid for started, _ in to_undo])
            if age < UNDO_LIMIT_S:
                heads = [process.pid for process in undoing]
                heads += [pid for started in self.started.values() for pid in started.spared]
                spared = {pid for head in heads for pid in (head, *descendants(head))}
                left = [pid for pid in left if pid not in spared]
            if age > 2:
                send(signal.SIGKILL, left)
            elif not all_asked and (age > 1 or not any(s.runs for s in self.started.values())):
                all_asked = True
                send(signal.SIGTERM, left)
            time.sleep(POLL_S)
        if self.cgroups:
            self.cgroups.remove()


class Cgroups:
    """Control groups for CPU accounting, one a command, under the supervisor's own."""

    def __init__(self, kind: str, home: Path) -> None:
        self.kind, self.home = kind, home
        self.mine: list[Path] = []
        self.numbers = itertools.count(1)

    @classmethod
    def usable(cls) -> "Cgroups | None":
        """Version 2, else version 1 with cpuacct; None where a group cannot be made or entered."""
        mounts = [line.split(" ") for line in _lines("/proc/self/mounts")]
        memberships = _lines("/proc/self/cgroup")
        paths = {line.split(":")[1]: line.split(":", 2)[2].lstrip("/") for line in memberships}
        candidates = [("cgroup2", Path(m[1], paths[""])) for m in mounts if m[2] == "cgroup2"
                      and "" in paths]  # fmt: skip
        for names, path in paths.items():
            if "cpuacct" in names.split(","):
                candidates += [
                    ("cgroup1 cpuacct", Path(m[1], path))
                    for m in mounts
                    if m[2] == "cgroup" and "cpuacct" in m[3].split(",")
                ]
        for kind, home in candidates:
            groups = cls(kind, home)
            groups.remove_what_the_dead_left()
            probe = groups.enter()
            try:
                left = groups.leave()
            except OSError:
                left = False
            if probe and left and groups.cpu_ns(probe) is not None:
                groups.remove()
                return groups
            groups.remove()
        return None

    def enter(self) -> Path | None:
        """Makes a group and moves this process in, so that what it forks is born there.

        Every start has a group of its own: its CPU time counts from zero.
        """
        path = self.home / f"tare-{os.getpid()}-{next(self.numbers)}"
        try:
            path.mkdir()
            self.mine.append(path)
            (path / "cgroup.procs").write_text("0", encoding="utf-8")
        except OSError:
            return None
        return path

    def leave(self) -> bool:
        with suppress(OSError):
            (self.home / "cgroup.procs").write_text("0", encoding="utf-8")
            return True
        return False

    def cpu_ns(self, path: Path) -> int | None:
        """CPU time of everything that ever ran in the group, in nanoseconds."""
        with suppress(OSError):
            if self.kind != "cgroup2":
                return int((path / "cpuacct.usage").read_text(encoding="utf-8"))
            for line in (path / "cpu.stat").read_text(encoding="utf-8").splitlines():
                if line.startswith("usage_usec "):
                    return int(line.split()[1]) * 1000
        return None

    def remove_what_the_dead_left(self) -> None:
        """A supervisor that was killed could not remove its groups."""
        for path in self.home.glob("tare-*-*"):
            name = re.fullmatch(r"tare-(\d+)-\d+", path.name)
            if name and not Path("/proc", name[1]).exists():
                with suppress(OSError):
                    path.rmdir()

    def remove(self) -> None:
        """Removes the groups that are empty."""
        for path in list(self.mine):
            with suppress(OSError):
                path.rmdir()
                self.mine.remove(path)


def _lines(file: str) -> list[str]:
    """As `tare.proc.proc_lines`: other users choose names in it."""
    return os.fsdecode(Path(file).read_bytes()).split("\n")[:-1]


def run_undo(
    command: list[str], *, directory: str, environment: dict[str, str], log: str
) -> "subprocess.Popen[bytes]":
    """Starts a command that undoes another; the folder of the other may be gone."""
    with Path(log).open("ab") as errors:
        return subprocess.Popen(
            command,
            cwd=directory if Path(directory).is_dir() else "/",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            process_group=0,
        )


def processes_in(cgroup: Path) -> list[int]:
    with suppress(OSError):
        return [int(pid) for pid in (cgroup / "cgroup.procs").read_text(encoding="utf-8").split()]
    return []


Processes = dict[int, tuple[int, int]]
"""pid -> (parent, process group)."""


def living() -> Processes:
    """All processes of the machine but zombies: asked for 50 times a second, so without Path."""
    everyone: Processes = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if not name.isdigit():
            continue
        with suppress(OSError):
            stat = os.open(f"/proc/{name}/stat", os.O_RDONLY | os.O_CLOEXEC)
            try:
                line = os.read(stat, 4096)
            finally:
                os.close(stat)
            state, parent, group = line.rpartition(b")")[2].split(None, 3)[:3]
            if state not in (b"Z", b"X"):
                everyone[int(name)] = (int(parent), int(group))
    return everyone


def descendants(root: int, everyone: Processes | None = None) -> Processes:
    """Living descendants of a process; `root` is not among them."""
    everyone = living() if everyone is None else everyone
    children: dict[int, list[int]] = {}
    for pid, (parent, _) in everyone.items():
        children.setdefault(parent, []).append(pid)
    found: Processes = {}
    unseen = [root]
    while unseen:
        for pid in children.get(unseen.pop(), ()):
            found[pid] = everyone[pid]
            unseen.append(pid)
    return found


def tree_cpu_ns(pids: Iterable[int]) -> int:
    """CPU time of processes and of their children that were waited for, in nanoseconds."""
    ticks = 0
    for pid in pids:
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            ticks += sum(int(value) for value in fields[11:15])
    return ticks * 10**9 // os.sysconf("SC_CLK_TCK")


def send(number: int, pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def set_subreaper(becomes: bool) -> bool:
    """Whether orphans among the descendants become children of this process, and so can be found.

    Returns whether they did before.
    """
    prctl: Callable[..., int] = ctypes.CDLL(None, use_errno=True).prctl
    before = ctypes.c_int()
    prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    prctl(PR_SET_CHILD_SUBREAPER, int(becomes), 0, 0, 0)
    return bool(before.value)


if __name__ == "__main__":
    set_subreaper(True)
    Supervisor(sys.stdin.fileno(), sys.stdout.fileno()).serve()
