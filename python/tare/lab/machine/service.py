# SPDX-License-Identifier: Apache-2.0
"""Metrics of a service with its proxies, from its control groups, else from its processes.

A control group also counts what processes used that have ended. It is read only if tare itself is
outside of it: otherwise other programs are in it too.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from tare.lab.machine import saturation
from tare.lab.machine.snapshot import Snapshot, add_guests, add_interfaces, read
from tare.proc import proc_lines

_TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SELF = "self"
_MEMORY_EVENTS = ("memory.events", "memory.oom_control")
_HELD_BACK = {
    b"throttled_time": ("throttled_time", 1),
    b"throttled_usec": ("throttled_time", 1000),
    b"oom_kill": ("oom_kills", 1),
}
"""Lines of files of control groups: metric and factor."""


class Service:
    """Reads the metrics of some processes and of those that they start."""

    def __init__(
        self, pids: Iterable[int], proc: Path = Path("/proc"), interfaces: Iterable[str] = ()
    ) -> None:
        """`interfaces` of this host have the traffic of guests, in which processes have no other
        network."""
        self._proc = str(proc)
        self._interfaces = {name.encode() for name in interfaces}
        self._pids = {*pids}
        groups, unified = (self._own_groups(controller, proc) for controller in ("cpuacct", ""))
        inner = unified or groups
        self._inner = [str(group) for group in inner]
        """The groups in which the processes are."""
        self._groups = [str(group) for group in inner if not {*inner}.intersection(group.parents)]
        """Those that are in no other: they count what is used in the groups below them."""
        around = saturation.Groups.of(self._pids, proc)
        # Quotas of outer groups hold the service back; pressure there can be that of others.
        files = [
            *(group / "cpu.stat" for group in around.cpu),
            *(group / name for group in around.memory for name in _MEMORY_EVENTS),
            *(Path(group, f"{name}.pressure")
              for group in self._groups if unified for name in ("cpu", "io", "memory")),
        ]  # fmt: skip
        self._pressure_files = [str(file) for file in files if file.exists()]
        own = self._network_of(_SELF)
        self._networks = {self._network_of(pid) for pid in self._pids} - {own, None}

    def read(self, snapshot: Snapshot) -> None:
        """Adds what the kernel shows now; a file that is missing or odd adds nothing."""
        pids = self._living()
        for part in (self._cpu_time, self._memory, self._traffic, self._saturation):
            with suppress(OSError, ValueError, IndexError, KeyError):
                part(snapshot, pids)

    def _own_groups(self, controller: str, proc: Path) -> list[Path]:
        """The groups of the service; none if tare is in one of them, or below."""
        shared = set(self._folders(_SELF, controller, proc))
        inner = {folders[0] for pid in self._pids
                 if (folders := self._folders(pid, controller, proc))}  # fmt: skip
        return [] if inner & shared else sorted(inner)

    def _folders(self, pid: int | str, controller: str, proc: Path) -> list[Path]:
        """The group of a process and those around it, the innermost first."""
        mounted = saturation.mounts(proc).get(controller)
        with suppress(OSError):  # it has ended
            for line in proc_lines(read(f"{self._proc}/{pid}/cgroup")):
                _, names, path = line.split(":", 2)
                if mounted and controller in names.split(","):
                    return saturation.folders(*mounted, path)
        return []

    def _living(self) -> set[int]:
        """The processes, without those that are known to have ended."""
        if self._groups:
            found: set[int] = set()
            for group in self._inner:
                with suppress(OSError, ValueError):
                    found.update(map(int, read(f"{group}/cgroup.procs").split()))
            return found
        unseen, seen = [*self._pids], set[int]()
        while unseen:
            seen.add(pid := unseen.pop())
            with suppress(OSError, ValueError):  # it has ended, or the kernel shows no children
                children = map(int, read(f"{self._proc}/{pid}/task/{pid}/children").split())
                unseen += [child for child in children if child not in seen]
        return seen

    def _cpu_time(self, snapshot: Snapshot, pids: Iterable[int]) -> None:
        for group in self._groups:
            try:
                user, system = (
                    int(read(f"{group}/cpuacct.usage_{mode}")) for mode in ("user", "sys")
                )
            except OSError:
                stat = dict(line.split() for line in read(f"{group}/cpu.stat").splitlines())
                user, system = (1000 * int(stat[name]) for name in (b"user_usec", b"system_usec"))
            snapshot.count("cpu_user", user, group)
            snapshot.count("cpu_system", system, group)
        for pid in () if self._groups else pids:
            with suppress(OSError):
                fields = read(f"{self._proc}/{pid}/stat").rpartition(b")")[2].split()
                user, system, of_children, in_children = map(int, fields[11:15])
                process = pid, fields[19]  # a later process can have the same id
                snapshot.count("cpu_user", (user + of_children) * _TICK_NS, process)
                snapshot.count("cpu_system", (system + in_children) * _TICK_NS, process)

    def _memory(self, snapshot: Snapshot, pids: Iterable[int]) -> None:
        """Pages that are no part of a file and not shared, as far as processes live."""
        pages = []
        for pid in pids:
            with suppress(OSError):
                _, resident, shared = map(int, read(f"{self._proc}/{pid}/statm").split()[:3])
                pages.append(resident - shared)
        if any(pages):
            snapshot.level("memory", _PAGE * sum(pages))

    def _traffic(self, snapshot: Snapshot, pids: Iterable[int]) -> None:
        """The sum over the networks of the services, without the network of this process."""
        if self._interfaces:
            add_guests(snapshot, read(f"{self._proc}/self/net/dev"), self._interfaces)
        unread = {*self._networks}
        for pid in pids if unread else ():
            network = self._network_of(pid)
            if network in unread:
                with suppress(OSError):  # it has ended; another process may have its network
                    table = read(f"{self._proc}/{pid}/net/dev")
                    unread.remove(network)
                    add_interfaces(snapshot, table, {}, network)

    def _network_of(self, pid: int | str) -> str | None:
        with suppress(OSError):
            return os.readlink(f"{self._proc}/{pid}/ns/net")  # noqa: PTH115
        return None

    def _saturation(self, snapshot: Snapshot, _pids: Iterable[int]) -> None:
        """What the kernel held the service back by, as `saturation.read` has it, but quicker."""
        counters: dict[str, int] = {}
        for path in self._pressure_files:
            with suppress(OSError, ValueError, IndexError):
                for metric, value in _held_back(path, read(path)):
                    counters[metric] = counters.get(metric, 0) + value
        for metric, value in counters.items():
            snapshot.count(metric, value)


def _held_back(path: str, text: bytes) -> Iterator[tuple[str, int]]:
    """The counters in a file of a control group."""
    if path.endswith(".pressure"):
        resource = path.rpartition("/")[2].removesuffix(".pressure")
        yield f"pressure_{resource}", 1000 * int(text.split(b"total=")[1].split()[0])
        return
    for line in text.splitlines():
        name, _, value = line.partition(b" ")
        if name in _HELD_BACK:
            metric, factor = _HELD_BACK[name]
            yield metric, int(value) * factor
