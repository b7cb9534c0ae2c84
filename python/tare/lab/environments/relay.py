# SPDX-License-Identifier: Apache-2.0
"""The relay of a link between two hosts: a program that carries each packet with the rate, loss
and delay of the link."""

import os
import socket
from contextlib import suppress
from pathlib import Path

from tare.lab.environments.host import ip, output
from tare.lab.environments.launch import RunError
from tare.lab.processes.logs import last_lines
from tare.lab.processes.processes import Process, Processes
from tare.native import native
from tare.plan import expected
from tare.plan.schema.environments import NetnsEnvironment
from tare.running.created_resources import Record, record
from tare.running.directory import runtime_directory

PROGRAM = native("bin", "tare-relay")
_DEVICE = Path("/dev/net/tun")
_QUEUE = 65_536
"""Frames that wait for the relay while it gets no CPU."""
_PACKET = 1500
_FRAMES_PER_SECOND = 10_000
"""What a host sends in this part of a second is one frame for the relay, with many packets."""
_ALL_PACKETS = 65_535


class Relay:
    """A link between this host and a network namespace."""

    def __init__(
        self, settings: NetnsEnvironment, processes: Processes, name: str, host_interface: str
    ) -> None:
        """`host_interface` is the interface of this host; `name` is that of the environment."""
        self._settings, self._processes, self._name = settings, processes, name
        self._interface, self._peer_interface = (
            host_interface,
            host_interface.replace("tare", "tfar"),
        )
        self._relay: Process | None = None
        self._record: Record | None = None

    @staticmethod
    def check() -> None:
        """Refuses without the program, or without the device for its interfaces."""
        if not os.access(PROGRAM, os.X_OK):
            raise expected(f"{PROGRAM}: build the native parts with 'make native'")
        if not _DEVICE.exists():
            raise expected(f"{_DEVICE}, the device of the kernel module tun")

    def start(self, holder: int) -> None:
        """Makes both interfaces, and moves one into the namespace of a process, as `eth0`.

        Raises RunError with the complaint of the relay.
        """
        log = runtime_directory() / "relays" / f"{self._interface}.log"
        name = self._interface
        gone = f"! ip link show dev {name} >/dev/null 2>&1 || ip link del dev {name}"
        undo = [("sh", "-c", gone), ("rm", "-f", str(log))]
        self._record = record("relay", self._interface, undo)
        log.parent.mkdir(mode=0o700, exist_ok=True)
        self._relay = self._processes.start(
            f"{self._name}/relay",
            # It ends with the supervisor, also if no process is left that could stop it.
            [
                "setpriv",
                "--pdeathsig",
                "KILL",
                PROGRAM,
                self._interface,
                self._peer_interface,
                *self._options,
            ],
            directory=Path("/"),
            log=log,
            cpus=sorted(os.sched_getaffinity(0)),
            stop_signal="KILL",
            undo=self._record.removal,
        )
        while not _exists(self._peer_interface):  # it makes this one last
            self._processes.wait(0.01)
            if self._relay.code is not None:
                why = next(iter(last_lines(log, 1)), self._relay.ending)
                raise RunError(f"the relay of the link did not start: {why}")
        for interface in (self._interface, self._peer_interface):
            packets = ("gso_max_segs", str(self._packets_per_frame))
            ip("link", "set", "dev", interface, "txqueuelen", str(_QUEUE), *packets)
        ip("link", "set", "dev", self._peer_interface, "netns", str(holder), "name", "eth0")

    @property
    def _options(self) -> list[str]:
        settings = self._settings
        rate = [] if settings.rate is None else ["--rate", str(settings.rate)]
        return ["--delay", str(settings.delay), "--loss", str(settings.loss), *rate]

    @property
    def _packets_per_frame(self) -> int:
        """How many packets a host may send as one frame, which is lost or delayed as a whole."""
        if self._settings.loss > 0:
            return 1
        if self._settings.rate is None:
            return _ALL_PACKETS
        packets = self._settings.rate // (8 * _PACKET * _FRAMES_PER_SECOND)
        return min(max(packets, 1), _ALL_PACKETS)

    def stop(self) -> None:
        """Removes the link."""
        if self._relay is not None:
            self._processes.stop([self._relay])
        if self._record is not None:
            output(self._record.removal, named=["remove", self._interface])
            self._record = None


def _exists(interface: str) -> bool:
    with suppress(OSError):
        return socket.if_nametoindex(interface) > 0
    return False
