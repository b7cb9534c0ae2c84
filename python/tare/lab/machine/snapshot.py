# SPDX-License-Identifier: Apache-2.0
"""What a source of metrics read at one moment, and what changed between two moments."""

import os
from collections.abc import Collection, Hashable, Iterator
from dataclasses import dataclass, field

UNITS = {
    "context_switches": None,
    "frequency": "Hz",
    "interrupts": None,
    "memory": "bytes",
    "memory_applications": "bytes",
    "memory_total": "bytes",
    "memory_used": "bytes",
    "network_loopback": "bytes",
    "network_received": "bytes",
    "network_transmitted": "bytes",
    "oom_kills": None,
    "thermal_throttles": None,
}
"""Units of metrics; all others are times in ns."""


@dataclass
class Snapshot:
    """Counters by metric and by what they count for, such as an interface; levels by metric.

    What the kernel does not show is absent.
    """

    counters: dict[tuple[str, Hashable], int] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=dict)

    def count(self, metric: str, value: int, of: Hashable = None) -> None:
        self.counters[metric, of] = value

    def level(self, metric: str, value: float) -> None:
        self.levels[metric] = value

    def since(self, before: "Snapshot") -> dict[str, float]:
        """The increase of each counter since an earlier moment, and each level now.

        A counter that only one of the moments has adds nothing: an interface was added, or a
        process has ended. If a counter went back, its metric is absent: the increase is unknown.
        """
        grown: dict[str, float] = {}
        unknown = set()
        for key, value in self.counters.items():
            if (earlier := before.counters.get(key)) is None:
                continue
            grown[key[0]] = grown.get(key[0], 0) + value - earlier
            if value < earlier:
                unknown.add(key[0])
        for metric in unknown:
            del grown[metric]
        return grown | self.levels


def read(path: str) -> bytes:
    """A file of the kernel, whole. Raises OSError."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(file, 1 << 16):
            parts.append(part)
    finally:
        os.close(file)
    return b"".join(parts)


def _interfaces(table: bytes) -> Iterator[tuple[bytes, list[bytes]]]:
    """Name and counters of each interface in `/proc/net/dev`."""
    for line in table.splitlines()[2:]:
        name, _, rest = line.partition(b":")
        yield name.strip(), rest.split()


def add_guests(snapshot: Snapshot, table: bytes, names: Collection[bytes]) -> None:
    """Adds the traffic of guests, by these interfaces: what a guest receives, they transmit."""
    for name, fields in _interfaces(table):
        if name in names:
            snapshot.count("network_received", int(fields[8]), name)
            snapshot.count("network_transmitted", int(fields[0]), name)


def add_interfaces(
    snapshot: Snapshot, table: bytes, counted: "dict[bytes, bool]", network: Hashable = None
) -> None:
    """Adds the traffic of `/proc/net/dev`: of the interfaces that count, and of loopback.

    `network` distinguishes namespaces, in which interfaces have equal names.
    """
    for name, fields in _interfaces(table):
        if name == b"lo":
            snapshot.count("network_loopback", int(fields[0]), network)
        elif counted.get(name, True):
            snapshot.count("network_received", int(fields[0]), (network, name))
            snapshot.count("network_transmitted", int(fields[8]), (network, name))
