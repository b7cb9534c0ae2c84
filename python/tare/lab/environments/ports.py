# SPDX-License-Identifier: Apache-2.0
"""Ports to listen on."""

import itertools
import random
import socket
from collections.abc import Iterator
from contextlib import closing
from functools import cached_property

from tare.lab.environments.launch import RunError

# Below the range from which the kernel takes ports of outgoing connections.
_RANGE = range(15000, 32000)
_given: set[int] = set()
_FIRST = 20000


class OwnPorts:
    """For an environment with a network of its own: every port is free."""

    @cached_property
    def _ports(self) -> Iterator[int]:
        return itertools.count(_FIRST)

    def free_port(self) -> int:
        return next(self._ports)

    def port(self, fixed: int | None) -> int:
        return self.free_port() if fixed is None else fixed


def free_port(address: str) -> int:
    """A port that nobody listens on and that was not given before in this process."""
    for port in random.sample(_RANGE, len(_RANGE)):
        if port not in _given and why_taken(address, port) is None:
            _given.add(port)
            return port
    _given.clear()
    raise RunError(f"no port of {address} is free")


def why_taken(address: str, port: int) -> str | None:
    """Why a service could not listen there now, in the kernel's words; None where it could."""
    with closing(socket.socket(socket.AF_INET)) as probe:
        # As servers do: a connection that is still being closed is no hindrance.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen()
        except OSError as error:
            return error.strerror
    return None
