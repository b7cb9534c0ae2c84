# SPDX-License-Identifier: Apache-2.0
"""A network namespace for each service, joined to the host by a veth pair or a relay.

The namespace has no name: a process holds it, and it goes, with its veth pair, when the last
process in it ends. So nothing is left behind, however tare dies.
"""

import itertools
import os
import socket
import time
from pathlib import Path
from typing import Any

from tare.lab.environments.host import Host, ip
from tare.lab.environments.launch import RunError
from tare.lab.environments.ports import OwnPorts
from tare.lab.environments.relay import Relay
from tare.lab.processes.processes import Process, find
from tare.plan import expected
from tare.plan.schema.environments import EnvironmentBase, NetnsEnvironment

_numbers = itertools.count(1)
_NETWORKS = 1 << 14
"""Networks of four addresses in 10.213.0.0/16."""


class Netns(OwnPorts, Host):
    """Programs of this host in a network of their own."""

    _holder: Process | None = None
    _relay: Relay | None = None
    _address = ""
    _host_address = ""

    @staticmethod
    def check(settings: Any) -> None:
        """Refuses without root, the programs of iproute2 and util-linux, or what a relay needs."""
        if os.geteuid() != 0:
            raise expected("root rights for a network namespace; use sudo")
        for program in ("ip", "unshare", "nsenter", "setpriv"):
            if find(program) is None:
                raise expected(f"{program} to be installed: get iproute2 and util-linux")
        if _has_relay(settings):
            Relay.check()

    def prepare(self) -> None:
        """Makes a namespace and a link to it; raises RunError where the kernel refuses."""
        host_interface = f"tare{os.getpid()}-{next(_numbers)}"
        self._holder = self.processes.start(
            f"{self.name}/netns",
            # It ends with the supervisor, also if no process is left that could stop it.
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"],
            directory=Path("/"),
            log=Path(os.devnull),
            cpus=sorted(os.sched_getaffinity(0)),
            stop_signal="KILL",
            undo=self._record_of(host_interface),
        )
        pid = self._holder.pid
        _wait_for_namespace(pid)
        if _has_relay(self.settings):
            self._relay = Relay(self.settings, self.processes, self.name, host_interface)
            self._relay.start(pid)
        else:
            ip(
                "link",
                "add",
                host_interface,
                "type",
                "veth",
                "peer",
                "name",
                "eth0",
                "netns",
                str(pid),
            )
        ip("link", "set", host_interface, "up")
        peer_address = (
            self._joined_alone(host_interface)
            if self.bridge_network is None
            else self.bridge_network.join(host_interface)
        )
        self._address = peer_address.partition("/")[0]
        self.exec(["ip", "addr", "add", peer_address, "dev", "eth0"])
        self.exec(["ip", "link", "set", "eth0", "up"])
        self.exec(["ip", "link", "set", "lo", "up"])

    def _joined_alone(self, interface: str) -> str:
        """Gives this host an address, and returns the address of the other end."""
        host_address, peer_address = free_pair(socket.if_nametoindex(interface))
        joined = self._joined(interface)
        ip("addr", "add", f"{host_address}/30", "dev", joined)
        self._host_address = host_address
        ip("link", "set", joined, "up")
        return f"{peer_address}/30"

    def _record_of(self, _interface: str) -> list[str] | None:
        """The command that removes what the kernel does not remove with the namespace."""
        return None

    def _joined(self, interface: str) -> str:
        """The interface of this host that gets an address: this end of the link."""
        return interface

    @property
    def namespace(self) -> str:
        """The file of the namespace."""
        assert self._holder is not None
        return f"/proc/{self._holder.pid}/ns/net"

    @property
    def address(self) -> str:
        return self._address

    @property
    def host_address(self) -> str:
        return (
            self._host_address if self.bridge_network is None else self.bridge_network.host_address
        )

    @property
    def prefix(self) -> tuple[str, ...]:
        return ("nsenter", f"--net={self.namespace}", "--")

    def stop(self) -> None:
        if self._relay is not None:
            self._relay.stop()
        if self._holder is not None:
            self.processes.stop([self._holder])


def _has_relay(settings: EnvironmentBase) -> bool:
    return isinstance(settings, NetnsEnvironment) and settings.has_relay


def _wait_for_namespace(pid: int) -> None:
    until = time.monotonic() + 5
    own = Path("/proc/self/ns/net").readlink()
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/ns/net").readlink() != own:
                return
        except OSError:
            break
        time.sleep(0.005)
    raise RunError("unshare --net: the kernel created no network namespace")


def free_pair(index: int) -> tuple[str, str]:
    """Two addresses of a /30 that no interface of this host has.

    The search begins at the number of the interface they are for, which no other interface has: so
    two processes at once do not take the same.
    """
    taken = ip("-o", "-4", "addr")
    for number in range(index, index + _NETWORKS):
        third, fourth = divmod(number % _NETWORKS * 4, 256)
        host, peer = f"10.213.{third}.{fourth + 1}", f"10.213.{third}.{fourth + 2}"
        if f" {host}/" not in taken:
            return host, peer
    raise RunError("no free network in 10.213.0.0/16; delete unused networks (tare clean)")
