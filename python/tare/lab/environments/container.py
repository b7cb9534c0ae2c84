# SPDX-License-Identifier: Apache-2.0
"""A container for each program of a run, made by runc, with the files of this host read-only.

A first process keeps each container, and runc starts the program beside it.
"""

import itertools
import os
import shutil
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.lab.environments import bundle
from tare.lab.environments.bridge import Bridge
from tare.lab.environments.environment import Environment, Program
from tare.lab.environments.host import Host, output
from tare.lab.environments.launch import RunError
from tare.lab.environments.layer import mount_layer, unmount_layer
from tare.lab.environments.netns import Netns
from tare.lab.environments.running import RunningContainer, printing_to_files, runc
from tare.lab.processes.logs import last_lines
from tare.lab.processes.processes import Family, Process, Processes, find, variables_of
from tare.native import native
from tare.plan import expected
from tare.running.created_resources import Record, record
from tare.running.directory import runtime_directory

if TYPE_CHECKING:
    from tare.lab.environments.segment import Segment

_numbers = itertools.count(1)


class Container(Environment):
    """Programs in containers of their own, which share a network."""

    def __init__(
        self,
        settings: Any,
        processes: Processes,
        name: str,
        segment: "Segment | None" = None,
        network: Host | None = None,
    ) -> None:
        """With a network, it is used, and neither made nor removed here."""
        super().__init__(settings, processes, name, segment)
        kind = Bridge if settings.own_network else Host
        self._network: Host = network or kind(settings, processes, name, segment)
        self._own_network = network is None
        self._boxes: dict[str, Box] = {}
        """By the name of the program."""
        self._written: list[Path] = []
        self._root = None if settings.root is None else Path(settings.root)
        self._visible = [Path(native("", "")).parent]
        if self._root is None:
            self._visible += [Path(sys.prefix), Path(sys.base_prefix)]

    @staticmethod
    def check(settings: Any) -> None:
        """Refuses without root, runc, or the programs for a network."""
        if os.geteuid() != 0:
            raise expected("root rights for a container; use sudo")
        if find("runc") is None:
            raise expected("runc to be installed: get the package runc")
        if settings.own_network:
            Netns.check(settings)
        if settings.root is not None and not Path(settings.root).is_dir():
            raise expected(f"a folder with files: {settings.root} does not exist", "root")

    def prepare(self) -> None:
        if self._own_network:
            self._network.prepare()

    @property
    def address(self) -> str:
        return self._network.address

    def free_port(self) -> int:
        return self._network.free_port()

    def port(self, fixed: int | None) -> int:
        return self._network.port(fixed)

    def copy_in(self, paths: Iterable[Path], read_only: Iterable[Path] = ()) -> None:
        """Mounts folders into the containers of programs that start later."""
        self._written += [path.absolute() for path in paths]
        self._visible += [path.absolute() for path in read_only]

    def start(self, program: Program) -> Process:
        texts = [*program.command, *program.variables.values()]
        visible = bundle.named(texts, self._written) if self._root is None else []
        box = self._box(program.name, program.cpus, program.log, visible)
        words = printing_to_files(program)
        return self.processes.start(
            program.name,
            box.words(words, program.directory, program.variables),
            directory=program.directory,
            log=program.log,
            cpus=program.cpus,
            stop_signal=program.stop_signal,
            grace_s=program.grace_s,
            container=box.running.group,
        )

    def family(self, process: Process) -> Family:
        return self._boxes[process.name].running.family()

    def exec(self, words: Sequence[str]) -> str:
        box = self._box(f"{self.name}/exec", sorted(os.sched_getaffinity(0)))
        return output(box.words(words, Path("/"), {}), named=words)

    def copy_out(self, paths: Iterable[Path]) -> None:
        """Copies what programs wrote into layers; volumes are folders of this host."""
        for box in self._boxes.values():
            box.copy_out([path.absolute() for path in paths])

    def stop(self) -> None:
        try:
            while self._boxes:
                self._boxes.popitem()[1].remove()
        finally:
            if self._own_network:
                self._network.stop()

    def _box(
        self,
        program: str,
        cpus: Sequence[int],
        log: Path | None = None,
        visible: Sequence[Path] = (),
    ) -> "Box":
        """The container of a program, running."""
        if program not in self._boxes:
            volumes = [] if log is None else [log.absolute()]
            for file in volumes:
                file.touch()
            box = Box(self.processes, program, cpus)
            layered = self.settings.files == "layered"
            contents = bundle.Contents(
                volumes=[*volumes, *([] if layered else self._written)],
                layered=[(path, box.layer(path)) for path in self._written] if layered else [],
                visible=[*self._visible, *visible],
                network=self._network.namespace if isinstance(self._network, Netns) else None,
                cpus=self.settings.cpus,
                memory=self.settings.memory,
                root=self._root,
            )
            # Before it starts: what fails on the way is removed, too.
            self._boxes[program] = box
            box.start(contents)
        return self._boxes[program]


class Box:
    """One container."""

    def __init__(self, processes: Processes, program: str, cpus: Sequence[int]) -> None:
        self.processes, self.program, self.cpus = processes, program, cpus
        self.name = f"tare-{os.getpid()}-{next(_numbers)}"
        self.layers: dict[Path, Path] = {}
        self._root = runtime_directory() / "runc"
        self._runc = runc(self._root)
        self._bundle = runtime_directory() / "containers" / self.name
        self._keeper: Process | None = None
        self._record: Record | None = None

    def layer(self, path: Path) -> Path:
        """Where OverlayFS stores what is written to a folder: on its file system, beside it."""
        self.layers[path] = path.parent / f"{path.name}~{self.name}"
        return self.layers[path]

    def start(self, contents: bundle.Contents) -> None:
        """Starts the container. Raises RunError with runc's complaint."""
        layer = self._bundle / "root"
        undo = [
            (*self._runc, "delete", "--force", self.name),
            unmount_layer(layer),
            ("rm", "-rf", "--one-file-system", str(self._bundle), *map(str, self.layers.values())),
        ]
        self._record = record("container", self.name, undo)
        self._bundle.mkdir(parents=True)
        self._bundle.chmod(0o700)
        self._has_own_files = contents.root is not None
        if contents.root is not None:
            contents = replace(contents, root=mount_layer(contents.root, layer))
        bundle.write(self._bundle, self.name, contents)
        log, up = self._bundle / "log", self._bundle / "pid"
        self._keeper = self.processes.start(
            f"{self.program}/container",
            [*self._runc, "run", "--bundle", str(self._bundle), "--pid-file", str(up), self.name],
            directory=self._bundle,
            log=log,
            cpus=self.cpus,
            stop_signal="KILL",
            undo=self._record.removal,
        )
        while not up.exists():
            self.processes.wait(0.02)
            if self._keeper.code is not None:
                why = next(iter(last_lines(log, 1)), self._keeper.ending)
                raise RunError(f"the container did not start: {why}")
        pid = int(up.read_text(encoding="utf-8"))
        self.running = RunningContainer(self._root, self.name, pid, self._bundle)

    def words(
        self, words: Sequence[str], directory: Path, variables: Mapping[str, str]
    ) -> list[str]:
        """The command of this host that runs a command in the container."""
        if self._has_own_files:
            everything = {"PATH": bundle.PATH, **variables}
        else:
            everything = variables_of(variables)
        return self.running.words(bundle.process(words, directory, everything))

    def copy_out(self, paths: Sequence[Path]) -> None:
        """Moves what was written into layers of folders to the folders themselves."""
        for path, layer in self.layers.items():
            if any(path == written or path in written.parents for written in paths):
                _apply(layer / "upper", path)

    def remove(self) -> None:
        """Ends the container with all that is in it, and removes it."""
        if self._keeper is not None:
            self.processes.stop([self._keeper])
        if self._record is not None:
            output(self._record.removal, named=["remove", self.name])


def _apply(upper: Path, path: Path) -> None:
    """Moves the files of an upper folder of OverlayFS over those of the lower folder."""
    for source in sorted(upper.rglob("*")):
        target = path / source.relative_to(upper)
        status = source.lstat()
        if stat.S_ISDIR(status.st_mode):
            target.mkdir(exist_ok=True)
        elif stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:  # the program deleted it
            shutil.rmtree(target) if target.is_dir() else target.unlink(missing_ok=True)
        else:
            source.replace(target)
