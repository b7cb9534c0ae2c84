# SPDX-License-Identifier: Apache-2.0
"""Metrics of this host: CPU time, memory, network, pressure, frequency, and its clock."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from tare.lab.machine.clock import Clock
from tare.lab.machine.snapshot import Snapshot, add_interfaces, read

_TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
_CPU_TIMES = {
    "cpu_user": (0, 1),  # nice is user time, too
    "cpu_system": (2,),
    "cpu_idle": (3,),
    "cpu_iowait": (4,),
    "cpu_irq": (5, 6),
    "steal": (7,),
}
"""Fields of the line `cpu` of /proc/stat (proc_stat(5))."""
_NOT_APPLICATIONS = (
    b"MemFree", b"Buffers", b"Cached", b"Slab", b"PageTables", b"SwapCached",
)  # fmt: skip
MOST_CPUS = 8
"""CPUs whose frequency is read: a server with hundreds would take milliseconds per reading."""


class Host:
    """Reads the metrics of this host, as far as it has them."""

    def __init__(
        self, cpus: Sequence[int], proc: Path = Path("/proc"), system: Path = Path("/sys")
    ) -> None:
        """The frequency is that of `cpus`, or of an even selection of them."""
        self._proc, self._system = str(proc), str(system)
        step = -(-len(cpus) // MOST_CPUS) or 1
        folder = f"{system}/devices/system/cpu/cpu"
        chosen = [f"{folder}{cpu}" for cpu in cpus[::step]]
        self._frequencies, self._throttle_counts = (
            [path for cpu in chosen if os.path.exists(path := f"{cpu}/{name}")]  # noqa: PTH110
            for name in ("cpufreq/scaling_cur_freq", "thermal_throttle/core_throttle_count")
        )
        self._counted: dict[bytes, bool] = {}
        self._clock = Clock()
        self._parts: list[Callable[[Snapshot], None]] = [
            self._cpu_times, self._memory, self._network, self._frequency, self._throttles,
            self._clock.read, *(partial(self._pressure, name) for name in ("cpu", "io", "memory")),
        ]  # fmt: skip

    def read(self, snapshot: Snapshot) -> None:
        """Adds what the kernel shows now; a file that is missing or odd adds nothing."""
        for part in self._parts:
            with suppress(OSError, ValueError, IndexError, KeyError):
                part(snapshot)

    def _cpu_times(self, snapshot: Snapshot) -> None:
        text = read(f"{self._proc}/stat")
        ticks = [int(field) for field in text[: text.index(b"\n")].split()[1:]]
        for metric, fields in _CPU_TIMES.items():
            snapshot.count(metric, sum(ticks[field] for field in fields) * _TICK_NS)
        for metric, name in (("context_switches", b"\nctxt "), ("interrupts", b"\nintr ")):
            # The line of interrupts can have thousands of numbers after their sum.
            if (at := text.find(name)) >= 0:
                snapshot.count(metric, int(text[at + 6 : at + 40].split()[0]))

    def _memory(self, snapshot: Snapshot) -> None:
        lines = read(f"{self._proc}/meminfo").splitlines()
        parts = (line.split() for line in lines)
        kib = {part[0][:-1]: int(part[1]) for part in parts if len(part) > 1}
        total = kib[b"MemTotal"]
        snapshot.level("memory_total", 1024 * total)
        snapshot.level("memory_used", 1024 * (total - kib[b"MemAvailable"]))
        others = sum(kib[name] for name in _NOT_APPLICATIONS)
        snapshot.level("memory_applications", 1024 * (total - others))

    def _network(self, snapshot: Snapshot) -> None:
        table = read(f"{self._proc}/net/dev")
        names = {line.partition(b":")[0].strip() for line in table.splitlines()[2:]}
        if names != self._counted.keys():
            self._counted = self._leaving_host(names)
        add_interfaces(snapshot, table, self._counted)

    def _leaving_host(self, names: set[bytes]) -> dict[bytes, bool]:
        """Which interfaces count: devices. Bridges and veth pairs carry the same bytes again.

        In a container, no interface has a device: then all of them count.
        """
        folder = f"{self._system}/class/net"
        devices = {name for name in names if os.path.exists(f"{folder}/{os.fsdecode(name)}/device")}  # noqa: PTH110
        return {name: not devices or name in devices for name in names}

    def _pressure(self, resource: str, snapshot: Snapshot) -> None:
        some, _, full = read(f"{self._proc}/pressure/{resource}").partition(b"\n")
        snapshot.count(f"pressure_{resource}", 1000 * int(some.partition(b"total=")[2]))
        if resource != "cpu":  # no task of the whole machine waits for all CPUs at once
            snapshot.count(f"pressure_{resource}_full", 1000 * int(full.partition(b"total=")[2]))

    def _frequency(self, snapshot: Snapshot) -> None:
        found = []
        for path in self._frequencies:
            with suppress(OSError, ValueError):  # the CPU is offline
                found.append(int(read(path)))
        if found:
            snapshot.level("frequency", 1000 * sum(found) / len(found))

    def _throttles(self, snapshot: Snapshot) -> None:
        for path in self._throttle_counts:
            with suppress(OSError, ValueError):
                snapshot.count("thermal_throttles", int(read(path)), path)
