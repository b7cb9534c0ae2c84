# SPDX-License-Identifier: Apache-2.0
"""What the kernel held a service back by: its CPU quota, want of memory, waiting for a disk.

Read around the load of each run, from the control groups of its processes and the kernel's
pressure stall information, as far as they are there.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tare.proc import proc_lines

DISK = 0.1
"""Share of the load: a service may well use its disk."""
PROC = Path("/proc")
_PRESSURES = ("cpu", "io", "memory")
_QUOTA = frozenset(("throttled_time",))
_OF_GROUP = frozenset(("throttled_time", "oom_kills"))
"""Counters that are never those of the whole machine."""


@dataclass(frozen=True)
class Groups:
    """The folders of some processes' control groups."""

    cpu: frozenset[Path]
    """With all groups around them: each may have a quota of its own."""
    memory: frozenset[Path]
    pressure: frozenset[Path]

    @classmethod
    def of(cls, pids: Iterable[int], proc: Path = PROC) -> Groups:
        """Those that this process can see."""
        mounted = mounts(proc)
        found: dict[str, set[Path]] = {"cpu": set(), "memory": set(), "": set()}
        for pid in pids:
            data = b""
            with suppress(OSError):  # it has ended
                data = (proc / str(pid) / "cgroup").read_bytes()
            for line in proc_lines(data):
                _, names, path = line.split(":", 2)
                for name in names.split(","):
                    if name in mounted and name in found:
                        found[name].update(folders(*mounted[name], path))
        around = {folder for name in ("cpu", "") for folder in found[name]}
        memory, pressure = (_innermost(found[name]) for name in ("memory", ""))
        return cls(frozenset(around), memory | pressure, pressure)


@dataclass(frozen=True)
class Saturation:
    """What some counters grew by; read once, since some beginning."""

    began_ns: int
    duration_ns: int
    counters: Mapping[str, int]
    """`throttled_time`, `pressure_cpu`, `pressure_io`, `pressure_memory` in ns; `oom_kills`."""

    def __sub__(self, before: Saturation) -> Saturation:
        grown = {
            name: value - before.counters[name]
            for name, value in self.counters.items()
            if name in before.counters
        }
        return Saturation(before.began_ns, self.began_ns - before.began_ns, grown)

    def share(self, name: str) -> float:
        """Of the time; that of several CPUs adds up."""
        return self.counters.get(name, 0) / max(self.duration_ns, 1)

    def time(self, name: str) -> str:
        """The same as text."""
        return f"{self.counters.get(name, 0) / 1e9:.3g} s of {self.duration_ns / 1e9:.3g} s"


def read(groups: Groups, proc: Path = PROC) -> Saturation:
    """The counters of groups now; pressure is the machine's where groups have none."""
    counters: dict[str, int] = {}
    for folder in groups.cpu:
        stat = _pairs(folder / "cpu.stat")
        _add(counters, "throttled_time", stat.get("throttled_time"))
        _add(counters, "throttled_time", stat.get("throttled_usec"), 1_000)
    for folder in groups.memory:
        for name in ("memory.events", "memory.oom_control"):
            _add(counters, "oom_kills", _pairs(folder / name).get("oom_kill"))
    for resource in _PRESSURES:
        found = [_stalled_ns(folder / f"{resource}.pressure") for folder in groups.pressure]
        known = [stalled_ns for stalled_ns in found if stalled_ns is not None]
        whole = _stalled_ns(proc / "pressure" / resource) if not known else None
        for stalled_ns in [*known, whole]:
            _add(counters, f"pressure_{resource}", stalled_ns)
    return Saturation(time.time_ns(), 0, counters)


class Watch:
    """Begins now to watch the control groups of processes, and of those that they will start.

    With `quota_only`, other limits count only in groups that `look` finds: memory of the first
    groups may be used by other programs, too.
    """

    def __init__(self, pids: Iterable[int], *, quota_only: bool = False, proc: Path = PROC) -> None:
        self._proc, self._groups = proc, Groups.of(pids, proc)
        self._names = _QUOTA if quota_only else None
        self._before = self._read()
        self._inner: list[_Inner] = []

    def look(self, pids: Iterable[int]) -> None:
        """Watches groups, too, that processes have entered since; reads those found before.

        A group can be removed with its last process, so what was read last counts.
        """
        for inner in self._inner:
            inner.look()
        found, known = (
            Groups.of(pids, self._proc),
            [self._groups, *(inner.groups for inner in self._inner)],
        )
        groups = Groups(
            found.cpu.difference(*(watched.cpu for watched in known)),
            found.memory.difference(*(watched.memory for watched in known)),
            frozenset(),
        )
        if groups.cpu or groups.memory:
            self._inner.append(_Inner(groups))

    def saturation(self) -> Saturation:
        """What happened to them up to now."""
        saturation = self._read() - self._before
        counters = {**saturation.counters}
        for inner in self._inner:
            inner.look()
            for name, value in inner.grown.items():
                _add(counters, name, value)
        return replace(saturation, counters=counters)

    def _read(self) -> Saturation:
        return _only(read(self._groups, self._proc), self._names)


class _Inner:
    """Control groups that were found while something was watched."""

    def __init__(self, groups: Groups) -> None:
        self.groups, self.grown = groups, dict[str, int]()
        self._before = _only(read(groups), _OF_GROUP)

    def look(self) -> None:
        """Reads them again, as far as they exist."""
        now = _only(read(self.groups), _OF_GROUP) - self._before
        for name, value in now.counters.items():
            self.grown[name] = max(value, self.grown.get(name, 0))


def _only(saturation: Saturation, names: frozenset[str] | None) -> Saturation:
    """The counters of these names."""
    if names is None:
        return saturation
    counters = {name: value for name, value in saturation.counters.items() if name in names}
    return replace(saturation, counters=counters)


def notes(saturation: Saturation) -> list[str]:
    """What a reader must know of a run that counts."""
    found = []
    if saturation.counters.get("throttled_time"):
        found.append(f"the service was throttled for {saturation.time('throttled_time')}")
    if saturation.share("pressure_io") > DISK:
        found.append(f"the service waited for a disk for {saturation.time('pressure_io')}")
    return found


def _add(counters: dict[str, int], name: str, value: int | None, times: int = 1) -> None:
    if value is not None:
        counters[name] = counters.get(name, 0) + value * times


def _pairs(path: Path) -> dict[str, int]:
    """A file of lines with a name and a number."""
    with suppress(OSError, ValueError):
        pairs = path.read_text(encoding="utf-8").splitlines()
        return {name: int(value) for name, _, value in (pair.partition(" ") for pair in pairs)}
    return {}


def _stalled_ns(path: Path) -> int | None:
    """How long some task waited, by a file of pressure stall information."""
    with suppress(OSError, ValueError, IndexError):
        return int(path.read_text(encoding="utf-8").split("total=")[1].split()[0]) * 1_000
    return None


def mounts(proc: Path = PROC) -> dict[str, tuple[Path, Path]]:
    """Of each controller of version 1, and of version 2 as "": what is mounted, and where."""
    found = {}
    with suppress(OSError):
        for line in proc_lines((proc / "self/mountinfo").read_bytes()):
            first, _, last = line.partition(" - ")
            root, place = (Path(field) for field in first.split(" ")[3:5])
            kind, _, options = last.split(" ")[:3]
            names = {"cgroup": options.split(","), "cgroup2": [""]}.get(kind, [])
            found.update(dict.fromkeys(names, (root, place)))
    return found


def folders(root: Path, place: Path, path: str) -> list[Path]:
    """A group's folder and those around it, as far as they are mounted."""
    with suppress(ValueError):
        inner = Path(path).relative_to(root)
        return [place / inner, *(place / parent for parent in inner.parents)]
    return [place]


def _innermost(folders: set[Path]) -> frozenset[Path]:
    return frozenset(folders - {parent for folder in folders for parent in folder.parents})
