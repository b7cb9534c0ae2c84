# SPDX-License-Identifier: Apache-2.0
"""Network namespaces, and programs in them that talk to each other."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

BRIDGE = "bridge"
PEER = Path(__file__).parent / "peer.py"


class Host:
    """A network namespace with addresses, and what runs in it."""

    namespaces: ClassVar[set[int]] = set()
    """The numbers of those that exist now."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.programs: list[subprocess.Popen[str]] = []
        self.device = ""
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
        self.namespaces.add(self.netns)

    @property
    def netns(self) -> int:
        """Its number, as `/proc/PID/ns/net` has it."""
        return Path("/run/netns", self.name).stat().st_ino

    def start(self, program: str | Path, *words: str | int) -> "Program":
        """A program of peer.py."""
        command = ["ip", "netns", "exec", self.name, program, PEER, *words]
        environment = os.environ | {"PYTHONHOME": sys.base_prefix, "PYTHONDONTWRITEBYTECODE": "1"}
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.programs.append(process)
        return Program(process)

    def open_sockets(self, protocol: str = "tcp") -> int:
        """Sockets with a peer, those in TIME_WAIT apart."""
        listing = ["ss", "-H", "-n", f"--{protocol}", "state", "connected"]
        listing += ["exclude", "time-wait"]
        command = ["ip", "netns", "exec", self.name, *listing]
        return len(subprocess.check_output(command, text=True).splitlines())

    def remove(self) -> None:
        for process in self.programs:
            process.kill()
            process.communicate()
        self.namespaces.discard(self.netns)
        ip("netns", "del", self.name)


class Program:
    """peer.py in a namespace: commands go in and answers come out, a line each."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.pid = process.pid

    def ask(self, *words: str | int) -> str:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(" ".join(str(word) for word in words) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        assert answer, f"{words}: the program exited"
        return answer


def connect(first: Host, second: Host, number: int) -> None:
    """A cable: 10.99.NUMBER.1 and .2, fd99:NUMBER::1 and ::2."""
    ends = [f"tare{os.getpid() % 100000}{side}{number}" for side in "ab"]
    ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
    for host, end, last in zip((first, second), ends, (1, 2), strict=True):
        host.device = end
        ip("link", "set", end, "netns", host.name)
        ip("-n", host.name, "addr", "add", f"10.99.{number}.{last}/24", "dev", end)
        ip("-n", host.name, "addr", "add", f"fd99:{number}::{last}/64", "dev", end, "nodad")
        ip("-n", host.name, "link", "set", end, "up")


def join(host: Host, switch: Host, number: int, *, families: str = "46") -> None:
    """A cable to a bridge in another namespace: 10.98.0.NUMBER and fd98::NUMBER."""
    ends = [f"tare{os.getpid() % 100000}{side}{number}" for side in "hs"]
    ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
    ip("link", "set", ends[0], "netns", host.name)
    ip("link", "set", ends[1], "netns", switch.name)
    ip("-n", switch.name, "link", "set", ends[1], "master", BRIDGE, "up")
    if "4" in families:
        ip("-n", host.name, "addr", "add", f"10.98.0.{number}/24", "dev", ends[0])
    if "6" in families:
        ip("-n", host.name, "addr", "add", f"fd98::{number}/64", "dev", ends[0], "nodad")
    ip("-n", host.name, "link", "set", ends[0], "up")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def executable(folder: Path, name: str) -> Path:
    """Python under another name: another program, as far as the kernel knows."""
    place = folder / name
    if not place.exists():
        shutil.copy2(os.path.realpath(sys.executable), place)
    return place
