# SPDX-License-Identifier: Apache-2.0
"""Other runs of tare on this machine: two at once work, but they disturb each other.

Every run binds a socket to an abstract name that says which process it is. The kernel shows the
names of all users to all users, and takes each away with its process, however that ends.
"""

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NAME = "tare-run-"


@contextmanager
def announced() -> Iterator[None]:
    """Shows others that this process carries an experiment out."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mark:
        # Taken by the same number of another PID namespace: then others see that mark.
        with suppress(OSError):
            mark.bind(f"\0{NAME}{os.getpid()}")
        yield


def others() -> list[int]:
    """Process ids of the other runs that are under way in this network namespace."""
    names = ""
    with suppress(OSError):  # a container may hide it
        names = Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace")
    running = {int(pid) for pid in re.findall(rf"@{NAME}(\d+)$", names, re.MULTILINE)}
    return sorted(running - {os.getpid()})
