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
from tare.lab.environments.environment import Program
from tare.lab.environments.vm import Vm
from tare.lab.processes.processes import Process, Processes, find, variables_of
from tare.native import native
from tare.plan import expected

if TYPE_CHECKING:
    from tare.lab.environments.segment import Segment

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


class ContainerInVm(Vm):
    """Programs in containers of their own, in one guest and its network."""

    def __init__(
        self, settings: Any, processes: Processes, name: str, segment: "Segment | None" = None
    ) -> None:
        super().__init__(settings, processes, name, segment)
        self._boxes: dict[str, str] = {}
        """The containers by the name of the program."""
        self._numbers = itertools.count(1)
        self._written: list[Path] = []
        self._visible = [Path(native("", "")).parent, Path(sys.prefix), Path(sys.base_prefix)]

    @staticmethod
    def check(settings: Any) -> None:
        """Refuses without runc, too."""
        Vm.check(settings)
        if find("runc") is None:
            raise expected("runc to be installed: get the package runc")

    def copy_in(self, paths: Iterable[Path], read_only: Iterable[Path] = ()) -> None:
        """Mounts folders into the containers of programs that start later."""
        self._written += [path.absolute() for path in paths]
        self._visible += [path.absolute() for path in read_only]

    def start(self, program: Program) -> Process:
        self.boot(program.cpus)
        texts = [*program.command, *program.variables.values()]
        visible = bundle.named(texts, self._written)
        variables = variables_of(program.variables)
        inside = [*_TO_THE_THIRD, *program.command]
        words = self._words(
            program.name, inside, program.directory, variables, visible, prints_to_third=True
        )
        return super().start(replace(program, command=[*_THIRD_TOO, *words]))

    def exec(self, words: Sequence[str], named: Sequence[str] | None = None) -> str:
        self.boot(sorted(os.sched_getaffinity(0)))
        inside = self._words(f"{self.name}/exec", words, Path("/"), variables_of({}))
        return super().exec(inside, named or words)

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
            box = f"box{next(self._numbers)}"
            self._run(box, [*runc, "run", "--detach"], visible)
            self._boxes[program] = box
        process = json.dumps(bundle.process(words, directory, variables))
        file = _HOME / f"process{next(self._numbers)}.json"
        script = 'printf %s "$1" >"$0"'
        super().exec(["sh", "-c", script, str(file), process], named=["write", str(file)])
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
        home, made = _HOME / box, self.folder / box
        made.mkdir()
        bundle.write(made, box, contents, home)
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w:") as tar:
            tar.add(made, ".")
        text = base64.b64encode(archive.getvalue()).decode()
        super().exec(["sh", "-c", _RUN, str(home), text, *command], named=command)
