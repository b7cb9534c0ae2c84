# SPDX-License-Identifier: Apache-2.0
"""A container for each program of a run, made by runc in a virtual machine."""

import base64
import io
import itertools
import json
import os
import sys
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.lab.environments import bundle
from tare.lab.environments.environment import Environment, Program
from tare.lab.environments.vm import Vm
from tare.lab.processes.processes import Family, Process, Processes, find, variables_of
from tare.native import native
from tare.plan import expected

if TYPE_CHECKING:
    from tare.lab.environments.bridge_network import BridgeNetwork

_numbers = itertools.count(1)
_HOME = Path("/run/tare-boxes")
"""In the guest, where /run is its own."""
# OverlayFS may be a module of the kernel; user-mode Linux has modules in another folder. The output
# of the container would keep the shell's output open.
_RUN = """\
grep -qw overlay /proc/filesystems || modprobe overlay 2>/dev/null ||
    insmod "/usr/lib/uml/modules/$(uname -r)/kernel/fs/overlayfs/overlay.ko" || exit
mkdir -p "$0" && cd "$0" && printf %s "$1" | base64 -d | tar x || exit
shift
"$@" --bundle "$PWD" "${PWD##*/}" </dev/null >log 2>&1 || { cat log >&2; exit 1; }
"""


# Through runc, what a program prints would cost CPU time, and runc would wait for all that could
# still print. So the log is descriptor 3, too, which runc passes on.
_THIRD_TOO = ["sh", "-c", 'exec 3>&1; exec "$@"', "sh"]
_TO_THE_THIRD = ["sh", "-c", 'exec >&3 2>&3 3>&-; exec "$@"', "sh"]


class ContainerInVm(Environment):
    """Programs in containers of their own, in one guest and its network."""

    def __init__(
        self,
        settings: Any,
        processes: Processes,
        name: str,
        bridge_network: "BridgeNetwork | None" = None,
        guest: Vm | None = None,
    ) -> None:
        """With a guest, the containers are in it, and it is not made or removed here."""
        super().__init__(settings, processes, name, bridge_network)
        self._guest = guest or Vm(settings, processes, name, bridge_network)
        self._is_own = guest is None
        self._boxes: dict[str, str] = {}
        """The containers by the name of the program."""
        self._written: list[Path] = []
        self._visible = [Path(native("", "")).parent, Path(sys.prefix), Path(sys.base_prefix)]

    @staticmethod
    def check(settings: Any) -> None:
        """Refuses without runc or what loads a module of the guest's kernel, too."""
        Vm.check(settings)
        for program, package in (("runc", "runc"), ("insmod", "kmod")):
            if find(program) is None:
                raise expected(f"{program} to be installed: get the package {package}")

    def prepare(self) -> None:
        if self._is_own:
            self._guest.prepare()

    @property
    def address(self) -> str:
        return self._guest.address

    @property
    def host_address(self) -> str:
        return self._guest.host_address

    def free_port(self) -> int:
        return self._guest.free_port()

    def port(self, fixed: int | None) -> int:
        return self._guest.port(fixed)

    def add_volume(self, folder: Path, size: int) -> None:
        self._guest.add_volume(folder, size)

    def copy_in(self, paths: Iterable[Path], read_only: Iterable[Path] = ()) -> None:
        """Mounts folders into the containers of programs that start later."""
        self._written += [path.absolute() for path in paths]
        self._visible += [path.absolute() for path in read_only]

    def start(self, program: Program) -> Process:
        self._guest.boot(program.cpus)
        texts = [*program.command, *program.variables.values()]
        visible = bundle.named(texts, self._written)
        variables = variables_of(program.variables)
        inside = [*_TO_THE_THIRD, *program.command]
        words = self._words(
            program.name, inside, program.directory, variables, visible, prints_to_third=True
        )
        return self._guest.start(replace(program, command=[*_THIRD_TOO, *words]))

    def family(self, process: Process) -> Family:
        return self._guest.family(process)

    @property
    def interfaces(self) -> Sequence[str]:
        return self._guest.interfaces if self._is_own else ()

    def oom_kills(self) -> int:
        return self._guest.oom_kills() if self._is_own else 0

    def exec(self, words: Sequence[str]) -> str:
        self._guest.boot(sorted(os.sched_getaffinity(0)))
        inside = self._words(f"{self.name}/exec", words, Path("/"), variables_of({}))
        return self._guest.exec(inside, words)

    def copy_out(self, paths: Iterable[Path]) -> None:
        self._guest.copy_out(paths)

    def stop(self) -> None:
        if self._is_own:
            self._guest.stop()

    def _words(
        self,
        program: str,
        words: Sequence[str],
        directory: Path,
        variables: Mapping[str, str],
        visible: Sequence[Path] = (),
        *,
        prints_to_third: bool = False,
    ) -> list[str]:
        """The command of the guest that runs a command in the container of a program."""
        runc = [find("runc") or "runc", "--root", "/run/runc"]
        if program not in self._boxes:
            box = f"box{next(_numbers)}"
            self._run(box, [*runc, "run", "--detach"], visible)
            self._boxes[program] = box
        process = json.dumps(bundle.process(words, directory, variables))
        file = _HOME / f"process{next(_numbers)}.json"
        script = 'printf %s "$1" >"$0"'
        self._guest.exec(["sh", "-c", script, str(file), process], named=["write", str(file)])
        third = ["--preserve-fds", "1"] if prints_to_third else []
        return [*runc, "exec", *third, "--process", str(file), self._boxes[program]]

    def _run(self, box: str, command: Sequence[str], visible: Sequence[Path]) -> None:
        """Brings the bundle of a container into the guest, and starts it."""
        contents = bundle.Contents(
            volumes=self._written,
            layered=[],
            visible=[*self._visible, *visible],
            network=None,
            cpus=None,
            memory=None,
        )
        home, made = _HOME / box, self._guest.folder / box
        made.mkdir()
        bundle.write(made, box, contents, home)
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w:") as tar:
            tar.add(made, ".")
        text = base64.b64encode(archive.getvalue()).decode()
        self._guest.exec(["sh", "-c", _RUN, str(home), text, *command], named=command)
