# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces with a cable between them: one for servers, one for clients."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

SERVERS = [f"198.18.0.{last}" for last in (1, 2, 3, 4)]
"""From the range that RFC 2544 reserves for benchmarks."""
CLIENT = "198.18.0.100"
SETTINGS = {
    # Ports of connections that ended a second ago are free for new connections.
    "net.ipv4.tcp_tw_reuse": 1,
    "net.ipv4.tcp_max_tw_buckets": 1 << 20,
    "net.ipv4.ip_local_port_range": "16384 65535",
    "net.core.somaxconn": 1 << 16,
    "net.ipv4.tcp_max_syn_backlog": 1 << 16,
}


@dataclass(frozen=True)
class Namespace:
    """One end of the cable."""

    name: str

    @property
    def number(self) -> int:
        """As an edge has it in `netns`."""
        return Path("/run/netns", self.name).stat().st_ino

    def command(self, words: Sequence[str]) -> list[str]:
        """The command, in this namespace."""
        return ["ip", "netns", "exec", self.name, *words]

    def output(self, *words: str) -> str:
        """What a command prints here."""
        return subprocess.check_output(self.command(words), text=True)

    def counters(self, protocol: str) -> dict[str, int]:
        """The kernel's counters of a protocol ("Tcp", "Udp"), since the namespace was made."""
        lines = self.output("cat", "/proc/net/snmp").splitlines()
        names, values = (line.split()[1:] for line in lines if line.startswith(f"{protocol}:"))
        return dict(zip(names, map(int, values), strict=True))

    def open_connections(self) -> int:
        """TCP sockets with a peer, without those in TIME_WAIT."""
        states = ["state", "connected", "exclude", "time-wait"]
        return len(self.output("ss", "-H", "-n", "-t", *states).splitlines())


@dataclass(frozen=True)
class Network:
    """Both ends."""

    server: Namespace
    client: Namespace


@contextmanager
def network() -> Iterator[Network]:
    """Removes both namespaces at the end, and the cable with them."""
    unique = os.getpid()
    ends = Network(Namespace(f"tare-bench-{unique}-s"), Namespace(f"tare-bench-{unique}-c"))
    devices = {ends.server: f"tb{unique}s", ends.client: f"tb{unique}c"}
    addresses = {ends.server: SERVERS, ends.client: [CLIENT]}
    with ExitStack() as stack:
        for namespace in devices:
            stack.callback(
                subprocess.run, ["ip", "netns", "del", namespace.name], stderr=subprocess.DEVNULL
            )
            ip("netns", "add", namespace.name)
        server_device, client_device = devices.values()
        peer = ["peer", "name", client_device, "netns", ends.client.name]
        ip("link", "add", server_device, "netns", ends.server.name, "type", "veth", *peer)
        for namespace, device in devices.items():
            for address in addresses[namespace]:
                ip("-n", namespace.name, "addr", "add", f"{address}/24", "dev", device)
            for name in ("lo", device):
                ip("-n", namespace.name, "link", "set", name, "up")
            for key, value in SETTINGS.items():
                namespace.output("sysctl", "-q", "-w", f"{key}={value}")
        yield ends


def ip(*words: str) -> None:
    """ip(8)."""
    subprocess.run(["ip", *words], check=True)
