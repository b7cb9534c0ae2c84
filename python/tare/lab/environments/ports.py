# SPDX-License-Identifier: Apache-2.0
"""Ports to listen on."""

import random
import socket
from contextlib import closing

from tare.lab.environments.launch import RunError

# Below the range from which the kernel takes ports of outgoing connections.
_RANGE = range(15000, 32000)
_given: set[int] = set()


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
