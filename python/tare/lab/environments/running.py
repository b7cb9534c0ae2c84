# SPDX-License-Identifier: Apache-2.0
"""A running container of runc: starts programs beside its first process, which only waits.

So a program is not process 1, which ignores signals that it does not handle, and it ends as it
does on the host.
"""

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tare.lab.environments.environment import Program
from tare.lab.environments.launch import RunError
from tare.lab.machine import saturation
from tare.lab.processes.processes import Family, find
from tare.lab.processes.supervisor import Cgroups, processes_in
from tare.proc import proc_lines

_numbers = itertools.count(1)


class RunningContainer:
    """One container, by its name or ID."""

    def __init__(self, root: Path, name: str, first: int, folder: Path) -> None:
        self._runc = runc(root)
        self.name, self.first, self._folder = name, first, folder
        self._cgroups = _cgroups_of(first)

    @property
    def group(self) -> tuple[Path, int]:
        """Its control group, and its first process."""
        return self._cgroups.home, self.first

    def words(self, process: Mapping[str, Any]) -> list[str]:
        """The command of this host that runs a program in the container (OCI's `process`)."""
        file = self._folder / f"process{next(_numbers)}.json"
        file.write_text(json.dumps(process), encoding="utf-8")
        return [*self._runc, "exec", "--process", str(file), self.name]

    def family(self) -> Family:
        """All processes in the container but the first, and their CPU time."""
        folder, first = self.group
        pids = [pid for pid in processes_in(folder) if pid != first]
        return Family(sorted(pids), self._cgroups.cpu_ns(folder) or 0)


def runc(root: Path) -> list[str]:
    """The words that call runc with its state in a folder."""
    return [find("runc") or "runc", "--root", str(root)]


def printing_to_files(program: Program) -> list[str]:
    """The command of a program that writes to its log and output itself: through runc, what it
    prints would cost CPU time."""
    if program.output is None:
        return ["sh", "-c", 'exec >>"$0" 2>&1; exec "$@"', str(program.log), *program.command]
    files = [str(program.log), str(program.output)]
    return ["sh", "-c", 'exec >"$1" 2>>"$0"; shift; exec "$@"', *files, *program.command]


def _cgroups_of(pid: int) -> Cgroups:
    """The control group that accounts for the CPU time of a process."""
    mounts = saturation.mounts()
    folders = {}
    for line in proc_lines(Path(f"/proc/{pid}/cgroup").read_bytes()):
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            if name in mounts:
                folders[name] = saturation.folders(*mounts[name], path)[0]
    for name, kind in (("cpuacct", "cgroup1 cpuacct"), ("", "cgroup2")):
        if name in folders:
            return Cgroups(kind, folders[name])
    raise RunError(f"no control group accounts for the CPU time of process {pid}")
