# SPDX-License-Identifier: Apache-2.0
"""A virtual machine for each service and its proxies, with the files of this host.

Its first process is `guest.agent`; each program is represented on this host by a `guest.client`.
"""

import itertools
import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.lab.environments.environment import Environment, Program
from tare.lab.environments.guest import agent, client
from tare.lab.environments.guest.machine import Boot, Machine
from tare.lab.environments.guest.qemu import Qemu
from tare.lab.environments.guest.uml import UserModeLinux
from tare.lab.environments.host import ip, output
from tare.lab.environments.launch import RunError
from tare.lab.environments.netns import free_pair
from tare.lab.environments.ports import OwnPorts
from tare.lab.processes.logs import last_lines
from tare.lab.processes.processes import Family, Process, Processes, find, variables_of
from tare.plan import expected
from tare.plan.schema.environments import MachineName
from tare.running.created_resources import Record, record
from tare.running.directory import runtime_directory

if TYPE_CHECKING:
    from tare.lab.environments.bridge_network import BridgeNetwork

MACHINES: Mapping[MachineName, Machine] = {
    "kvm": Qemu("kvm"), "tcg": Qemu("tcg"), "uml": UserModeLinux(),
}  # fmt: skip
"""By their name in plans; the best first."""
BOOT_S, ANSWER_S = 300, 600
TRY_S = 0.25
"""Before the guest has its address, a connection fails only after seconds."""
_numbers = itertools.count(1)
_UNTIL_THE_SUPERVISOR_ENDS = (
    "setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child",
    "sh", "-c", '"$@"; exit "$?"', "sh",
)  # fmt: skip
"""Also if no process is left that could stop the guest; and in a PID namespace, so do the helpers
of its kernel. The first process there is a shell, since the kernel ignores the SIGABRT with which
a first process would end itself: after a panic, user-mode Linux sends it until it works."""
# In a guest, /run is its own, and /dev may be that of this host.
_MOUNT = """\
IFS=: read -r major minor <"/sys/class/block/$0/dev" && mknod "/run/$0" b "$major" "$minor" &&
    mount -t ext4 "/run/$0" "$1"
"""
_PYTHON = [sys.executable, "-I", "-S"]


class Vm(OwnPorts, Environment):
    """A guest with a kernel of its own."""

    def __init__(
        self,
        settings: Any,
        processes: Processes,
        name: str,
        bridge_network: "BridgeNetwork | None" = None,
    ) -> None:
        super().__init__(settings, processes, name, bridge_network)
        self._machine = MACHINES[settings.machine]
        self._unique = f"tare{os.getpid()}v{next(_numbers)}"
        self.folder = runtime_directory() / "guests" / self._unique
        self._requests = itertools.count(1)
        self._guest: Process | None = None
        self._first = ""
        """The name of the program that was started first: the service."""
        self._record: Record | None = None
        self._volumes: list[tuple[Path, Path]] = []
        """Images of file systems, and where the guest has them."""
        self._peer_address = ""
        """Its address, and the length of its network's."""
        self._host_address = ""
        self._token = secrets.token_hex(16)

    @staticmethod
    def check(settings: Any) -> None:
        """Refuses without root, what boots the guest, or a device for its network."""
        if os.geteuid() != 0:
            raise expected("root rights for a virtual machine; use sudo")
        machine = MACHINES[settings.machine]
        machine.check()
        if machine.most_cpus is not None and settings.cpus > machine.most_cpus:
            wanted = f'at most {machine.most_cpus} with machine = "{settings.machine}"'
            raise expected(wanted, "cpus")
        for program in ("ip", "setpriv", "unshare"):
            if find(program) is None:
                raise expected(f"{program} to be installed: get iproute2 and util-linux")
        if not Path("/dev/net/tun").exists():
            raise expected("/dev/net/tun, the device of the kernel module tun")

    def prepare(self) -> None:
        """Makes the network of the guest, which is booted for the first program."""
        gone = f"[ ! -e /sys/class/net/{self._unique} ] || ip link del {self._unique}"
        undo = [("sh", "-c", gone), ("rm", "-rf", "--one-file-system", str(self.folder))]
        self._record = record("vm", self._unique, undo)
        self.folder.mkdir(parents=True)
        self.folder.chmod(0o700)
        (self.folder / "token").write_text(self._token, encoding="ascii")
        ip("tuntap", "add", self._unique, "mode", "tap")
        if self.bridge_network is None:
            host_address, peer_address = free_pair(socket.if_nametoindex(self._unique))
            ip("addr", "add", f"{host_address}/30", "dev", self._unique)
            self._host_address, self._peer_address = host_address, f"{peer_address}/30"
        else:
            self._peer_address = self.bridge_network.join(self._unique)
            self._host_address = self.bridge_network.host_address
        ip("link", "set", self._unique, "up")

    @property
    def address(self) -> str:
        return self._peer_address.partition("/")[0]

    @property
    def host_address(self) -> str:
        return self._host_address

    def add_volume(self, folder: Path, size: int) -> None:
        if find("mkfs.ext4") is None:
            raise RunError("volumes of guests need mkfs.ext4: install e2fsprogs")
        super().add_volume(folder, size)
        image = Path(f"{folder}.ext4")
        with image.open("xb") as file:
            file.truncate(size)
        output(["mkfs.ext4", "-q", "-E", "lazy_itable_init=0", str(image)])
        self._volumes.append((image, folder))

    def copy_in(self, paths: Iterable[Path], read_only: Iterable[Path] = ()) -> None:
        """Programs see the files of this host."""

    def start(self, program: Program) -> Process:
        guest = self.boot(program.cpus)
        for path in (program.directory, program.log.absolute()):
            if path.is_relative_to("/run") or path.is_relative_to("/dev"):
                raise RunError(f"{path}: a guest has its own /run and /dev; use another folder")
        self._first = self._first or program.name
        request = {
            "do": "run",
            "words": [*program.command],
            "variables": variables_of(program.variables),
            "directory": str(program.directory),
            "log": str(program.log.absolute()),
        }
        file = self.folder / f"request{next(self._requests)}.json"
        file.write_text(json.dumps(request), encoding="utf-8")
        return self.processes.start(
            program.name,
            [
                *(*_PYTHON, client.__file__, str(self.folder / "token")),
                *(self.address, str(file), str(guest.pid)),
            ],
            directory=self.folder,
            log=program.log,
            cpus=program.cpus,
            stop_signal=program.stop_signal,
            grace_s=program.grace_s,
        )

    def family(self, process: Process) -> Family:
        """The guest's, which counts for the service: what each program of it used is not known."""
        if self._guest is None or process.name != self._first:
            return Family([], 0)
        return self.processes.family(self._guest)

    @property
    def interfaces(self) -> Sequence[str]:
        return (self._unique,)

    def oom_kills(self) -> int:
        """Raises RunError if the guest has ended."""
        lines = self.exec(["cat", "/proc/vmstat"]).splitlines()
        # Linux counts them since 4.13.
        return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))

    def exec(self, words: Sequence[str], named: Sequence[str] | None = None) -> str:
        """With other words for the command in an error, if they are given."""
        self.boot(sorted(os.sched_getaffinity(0)))
        found = self._ask({"do": "exec", "words": [*words], "variables": variables_of({})})
        if "error" in found or found["code"]:
            name = " ".join(named or words)
            raise RunError(found.get("error") or f"{name}: {found['stderr'].strip()}")
        return str(found["stdout"])

    def copy_out(self, _paths: Iterable[Path]) -> None:
        """Has the guest's kernel write all files, which are on this host."""
        if self._guest is not None and self._guest.code is None:
            self._ask({"do": "sync"})

    def stop(self) -> None:
        if self._guest is not None:
            self.processes.stop([self._guest])
            self._guest = None
        if self._record is not None:
            output(self._record.removal, named=["remove", self._unique])
            self._record = None

    def boot(self, cpus: Sequence[int]) -> Process:
        """Boots the guest on some CPUs, unless it is up.

        Raises RunError with the end of its console, also if it was up and has ended.
        """
        log = self.folder / "console"
        if self._guest is not None:
            if self._guest.code is not None:
                raise RunError(f"the virtual machine has ended: {_why(log, self._guest)}")
            return self._guest
        assert self._record is not None
        python = str(Path(sys.executable).absolute())
        words = ["-I", "-S", agent.__file__, str(self.folder / "token")]
        command = self._machine.command(
            Boot(
                name=self._unique,
                folder=self.folder,
                tap=self._unique,
                memory=self.settings.memory,
                cpus=self.settings.cpus,
                disks=[image for image, _ in self._volumes],
                first=[python, *words, self._peer_address, self._machine.interface],
            )
        )
        self._guest = guest = self.processes.start(
            f"{self.name}/guest",
            [*_UNTIL_THE_SUPERVISOR_ENDS, *command],
            directory=self.folder,
            log=log,
            cpus=cpus,
            stop_signal="KILL",
            undo=self._record.removal,
        )  # fmt: skip
        if self._comes_up(guest):
            self._mount_volumes()
            return guest
        in_time = "" if guest.code is not None else f" in {BOOT_S} s"
        why = _why(log, guest)
        self.processes.stop([guest])
        self._guest = None
        raise RunError(f"the virtual machine did not start{in_time}: {why}")

    def _mount_volumes(self) -> None:
        for number, (_, folder) in enumerate(self._volumes):
            device = f"{self._machine.disk}{chr(ord('a') + number)}"
            words = ["sh", "-c", _MOUNT, device, str(folder)]
            found = self._ask({"do": "exec", "words": words, "variables": variables_of({})})
            if "error" in found or found["code"]:
                why = found.get("error") or found["stderr"].strip()
                raise RunError(f"the volume {folder} could not be mounted in the guest: {why}")

    def _comes_up(self, guest: Process) -> bool:
        """Waits until the guest answers, has ended, or takes too long."""
        until = time.monotonic() + BOOT_S
        while time.monotonic() < until and guest.code is None:
            self.processes.wait(0.02)
            with suppress(OSError):
                client.asked(self._token, self.address, {"do": "sync"}, TRY_S).close()
                return True
        return False

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._guest is not None
        try:
            with client.asked(self._token, self.address, request) as connection:
                return client.answer(connection, self._guest.pid, ANSWER_S)
        except OSError as error:
            raise RunError(f"the virtual machine does not answer: {error}") from error


def _why(console: Path, guest: Process) -> str:
    """The last line of the console, or the last before a panic of the kernel."""
    lines = last_lines(console, 100)
    panics = [number for number, line in enumerate(lines) if line.startswith("Kernel panic")]
    said = lines[: panics[0]] if panics else lines
    return said[-1] if said else guest.ending
