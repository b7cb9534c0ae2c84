# SPDX-License-Identifier: Apache-2.0
"""The lab reads of a real chronyd what chronyc prints; no chronyd here touches the clock (-x)."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.peers.programs import running
from tests.waiting import wait_for

from tare.lab.machine.chrony import Chrony

pytestmark = pytest.mark.integration
SLACK_NS = 50
"""chronyc prints nanoseconds, and the offset changes between two questions."""


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, Path]:
    """chronyd and chronyc, unpacked: installed, Debian's package replaces the machine's own."""
    if os.geteuid() != 0:
        pytest.skip("chronyd needs root")
    folder = tmp_path / "chrony"
    folder.mkdir(mode=0o755)
    for command in ("apt-get download --quiet --quiet chrony", "dpkg -x chrony_*.deb ."):
        if subprocess.run(["sh", "-c", command], cwd=folder, check=False).returncode:
            pytest.skip("Debian's package chrony cannot be had")
    found = [folder / "usr/sbin/chronyd", folder / "usr/bin/chronyc"]
    for program in found:
        if subprocess.run([program, "--version"], check=False).returncode:
            pytest.skip(f"{program.name} needs libraries that are not installed")
    return {program.name: program for program in found}


@pytest.fixture
def port(tmp_path: Path, programs: dict[str, Path]) -> Iterator[int]:
    """The command port of a chronyd that follows another one."""
    ntp, commands = free_port(), free_port()
    everywhere = "user root\nbindcmdaddress /\n"
    server = f"local stratum 1\nport {ntp}\nbindaddress 127.0.0.1\nallow 127.0.0.1\ncmdport 0\n"
    follower = (
        f"server 127.0.0.1 port {ntp} iburst minpoll 0 maxpoll 0\nport 0\ncmdport {commands}\n"
        "bindcmdaddress 127.0.0.1\n"
    )
    with ExitStack() as stack:
        for name, text in (("server", server), ("follower", follower)):
            file = tmp_path / f"{name}.conf"
            file.write_text(f"{text}{everywhere}pidfile {tmp_path / name}.pid\n")
            command: list[str | Path] = [programs["chronyd"], "-x", "-d", "-f", file]
            stack.enter_context(running(command, tmp_path / f"{name}.log"))
        yield commands


def printed(chronyc: Path, port: int) -> list[float] | None:
    """Offset, error and limit in ns, as chronyc prints them; None without synchronization."""
    command = [str(chronyc), "-h", "127.0.0.1", "-p", str(port), "-c", "-n", "tracking"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    fields = answer.split(",")
    if len(fields) < 14 or fields[-1] == "Not synchronised":
        return None
    offset, rms, delay, dispersion = (1e9 * float(fields[at]) for at in (4, 6, 10, 11))
    return [offset, rms, abs(offset) + dispersion + delay / 2]


def test_offset_and_errors_are_those_of_chronyc(port: int, programs: dict[str, Path]) -> None:
    compared, chronyc = [], programs["chronyc"]

    def agree() -> bool:
        chrony = Chrony(port)
        before = printed(chronyc, port)
        chrony.tracking()
        after = printed(chronyc, port)
        found = chrony.tracking()
        if before is None or after is None or found is None:
            return False
        mine = (found.offset, found.error, found.error_limit)
        compared.append((before, mine, after))
        return all(
            min(low, high) - SLACK_NS <= value <= max(low, high) + SLACK_NS
            for low, value, high in zip(before, mine, after, strict=True)
        )

    wait_for(agree, "an answer that agrees with chronyc")
    assert compared[-1][1][2] > 0
