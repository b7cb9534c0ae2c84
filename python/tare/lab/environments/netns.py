# SPDX-License-Identifier: Apache-2.0
"""A network namespace for each service, joined to the host by a veth pair.

The namespace has no name: a process holds it, and it goes, with its veth pair, when the last
process in it ends. So nothing is left behind, however tare dies.
"""

import itertools
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tare.lab.launch import Place, RunError
from tare.lab.processes import Processes, find, search_path
from tare.plan import expected

_numbers = itertools.count(1)
_NETWORKS = 1 << 14
"""Networks of four addresses in 10.213.0.0/16."""


def check() -> None:
    """Refuses without root or without the programs of iproute2 and util-linux."""
    if os.geteuid() != 0:
        raise expected("root rights for a network namespace; use sudo")
    for program in ("ip", "unshare", "nsenter"):
        if find(program) is None:
            raise expected(f"{program} to be installed: get iproute2 and util-linux")


@contextmanager
def enter(processes: Processes, name: str) -> Iterator[Place]:
    """Makes a namespace and a veth pair to it; raises RunError where the kernel refuses."""
    holder = processes.start(
        f"{name}/netns",
        ["unshare", "--net", "sleep", "infinity"],
        directory=Path("/"),
        log=Path(os.devnull),
        cpus=sorted(os.sched_getaffinity(0)),
        stop_signal="KILL",
    )
    try:
        _wait_for_namespace(holder.pid)
        veth = f"tare{os.getpid()}-{next(_numbers)}"
        inside = ("nsenter", f"--net=/proc/{holder.pid}/ns/net", "--")
        ip("link", "add", veth, "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
        near, far = _free_pair(socket.if_nametoindex(veth))
        ip("addr", "add", f"{near}/30", "dev", veth)
        ip("link", "set", veth, "up")
        ip("addr", "add", f"{far}/30", "dev", "eth0", inside=inside)
        ip("link", "set", "eth0", "up", inside=inside)
        ip("link", "set", "lo", "up", inside=inside)
        ports = itertools.count(20000)  # everything is free in a namespace of one's own
        yield Place(far, inside, free_port=lambda: next(ports))
    finally:
        processes.stop([holder])


def ip(*words: str, inside: tuple[str, ...] = ()) -> str:
    """What `ip` prints; raises RunError with its complaint."""
    result = subprocess.run(
        [*inside, "ip", *words],
        env={**os.environ, "PATH": search_path(os.environ)},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if result.returncode:
        raise RunError(f"ip {' '.join(words)}: {result.stderr.strip()}")
    return result.stdout


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


def _free_pair(index: int) -> tuple[str, str]:
    """Two addresses of a /30 that no interface of this host has.

    The search begins at the number of the interface they are for, which no other one has: so two
    processes at once do not take the same.
    """
    taken = ip("-o", "-4", "addr")
    for number in range(index, index + _NETWORKS):
        third, fourth = divmod(number % _NETWORKS * 4, 256)
        near, far = f"10.213.{third}.{fourth + 1}", f"10.213.{third}.{fourth + 2}"
        if f" {near}/" not in taken:
            return near, far
    raise RunError("no free network in 10.213.0.0/16; delete unused networks (tare clean)")
