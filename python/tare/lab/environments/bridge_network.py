# SPDX-License-Identifier: Apache-2.0
"""A bridge that joins the networks of the services of one run."""

import itertools
import os
import socket

from tare.lab.environments.host import ip, output
from tare.lab.environments.launch import RunError
from tare.running.created_resources import Record, record

_numbers = itertools.count(1)
_SEGMENTS = 256
"""Networks of 256 addresses in 10.214.0.0/16."""
LENGTH = 24


class BridgeNetwork:
    """One network for several environments, with an address of this host, where the load is."""

    def __init__(self) -> None:
        self._name = f"tbs{os.getpid()}-{next(_numbers)}"
        self._record: Record | None = None
        self._third = 0
        self.host_address = ""
        """Where the environments reach a server of this host."""
        self._hosts = itertools.count(2)

    def prepare(self) -> None:
        """Makes the bridge. Raises RunError where the kernel refuses."""
        gone = f"[ ! -e /sys/class/net/{self._name} ] || ip link del {self._name}"
        self._record = record("bridge", self._name, [("sh", "-c", gone)])
        ip("link", "add", self._name, "type", "bridge")
        self._third = _free(socket.if_nametoindex(self._name))
        self.host_address = f"10.214.{self._third}.1"
        ip("addr", "add", f"{self.host_address}/{LENGTH}", "dev", self._name)
        ip("link", "set", self._name, "up")

    def join(self, interface: str) -> str:
        """Attaches an interface of this host; returns the address for its other end, and `/24`."""
        ip("link", "set", interface, "master", self._name)
        return f"10.214.{self._third}.{next(self._hosts)}/{LENGTH}"

    def stop(self) -> None:
        """Removes the bridge."""
        if self._record is not None:
            output(self._record.removal)
            self._record = None


def _free(index: int) -> int:
    """A number of a network that no interface has; see `netns.free_pair`."""
    taken = ip("-o", "-4", "addr")
    for number in range(index, index + _SEGMENTS):
        if f" 10.214.{number % _SEGMENTS}." not in taken:
            return number % _SEGMENTS
    raise RunError("no free network in 10.214.0.0/16; delete unused networks (tare clean)")
