# SPDX-License-Identifier: Apache-2.0
"""A container for each program of a run, made by runc, with the files of this host read-only, or
those of a folder or an image.

A first process keeps each container, and runc starts the program beside it.
"""

import itertools
import os
import shutil
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.lab.environments import bundle, image
from tare.lab.environments.bridge import Bridge
from tare.lab.environments.environment import Environment, Program
from tare.lab.environments.host import Host, output
from tare.lab.environments.launch import RunError
from tare.lab.environments.netns import Netns
from tare.lab.environments.overlay_mount import mount_overlay, unmount_overlay
from tare.lab.environments.running import RunningContainer, printing_to_files, runc
from tare.lab.processes.logs import last_lines
from tare.lab.processes.processes import Family, Process, Processes, find, variables_of
from tare.native import native
from tare.plan import expected
from tare.plan.schema.services import OwnContainer
from tare.running.created_resources import Record, record
from tare.running.directory import runtime_directory

if TYPE_CHECKING:
    from tare.lab.environments.bridge_network import BridgeNetwork

_numbers = itertools.count(1)
HOSTS, LOCALHOST = Path("/etc/hosts"), "127.0.0.1 localhost\n::1 localhost\n"
NOTHING_OWN = OwnContainer()
EXEC_S = 10.0
"""A command that asks a service may take so long."""
NAMES = (HOSTS, Path("/etc/resolv.conf"))
"""What engines give to the containers of an image, whose own files know no name of a host."""


class Container(Environment):
    """Programs in containers of their own, which share a network."""

    def __init__(
        self,
        settings: Any,
        processes: Processes,
        name: str,
        bridge_network: "BridgeNetwork | None" = None,
        network: Host | None = None,
    ) -> None:
        """With a network, it is used, and neither made nor removed here."""
        super().__init__(settings, processes, name, bridge_network)
        kind = Bridge if settings.own_network else Host
        self._network: Host = network or kind(settings, processes, name, bridge_network)
        self._own_network = network is None
        self._boxes: dict[str, Box] = {}
        """By the name of the program."""
        self._written: list[Path] = []
        self._root = None if settings.root is None else Path(settings.root)
        self._images: dict[str, image.Image] = {}
        self._hosts: Mapping[str, str] = {}
        self._visible = [Path(native("", "")).parent]

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
        if settings.image is not None:
            image.check(settings.image)

    def prepare(self) -> None:
        self.image_of(None)
        if self._own_network:
            self._network.prepare()

    @property
    def address(self) -> str:
        return self._network.address

    @property
    def host_address(self) -> str:
        return self._network.host_address

    def free_port(self) -> int:
        return self._network.free_port()

    def port(self, fixed: int | None) -> int:
        return self._network.port(fixed)

    def copy_in(self, paths: Iterable[Path], read_only: Iterable[Path] = ()) -> None:
        """Mounts folders into the containers of programs that start later."""
        self._written += [path.absolute() for path in paths]
        self._visible += [path.absolute() for path in read_only]

    def name_hosts(self, addresses: Mapping[str, str]) -> None:
        self._hosts = addresses

    def image_of(self, container: OwnContainer | None) -> image.Image | None:
        own = None if container is None else container.image
        name = own or self.settings.image
        if name is not None and name not in self._images:
            self._images[name] = image.read_image(name)
        return self._images.get(name)

    def start(self, program: Program) -> Process:
        box = self._box(program)
        return self.processes.start(
            program.name,
            box.words(printing_to_files(program), program),
            directory=program.directory if box.root is None else box.folder,
            log=program.log,
            cpus=program.cpus,
            stop_signal=program.stop_signal,
            grace_s=program.grace_s,
            container=box.running.group,
        )

    def family(self, process: Process) -> Family:
        return self._boxes[process.name].running.family()

    def exec_beside(self, process: Process, words: Sequence[str]) -> str:
        box = self._boxes[process.name]
        return output(box.words(words, box.program), named=words, limit_s=EXEC_S)

    def exec(self, words: Sequence[str]) -> str:
        cpus = sorted(os.sched_getaffinity(0))
        program = Program(f"{self.name}/exec", words, Path("/"), Path(os.devnull), cpus)
        return output(self._box(program).words(words, program), named=words)

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

    def _box(self, program: Program) -> "Box":
        """The container of a program, running."""
        if program.name not in self._boxes:
            # Before it is made: what fails on the way is removed, too.
            box = self._boxes[program.name] = Box(self.processes, program)
            self._make(box, program)
        return self._boxes[program.name]

    def _make(self, box: "Box", program: Program) -> None:
        volumes = [] if program.log == Path(os.devnull) else [program.log.absolute()]
        for file in volumes:
            file.touch()
        visible, written, layered = self._visible, self._written, []
        if self.settings.files == "layered":
            # Before the container is made, whose record names its layers.
            written, layered = [], [(path, box.layer(path)) for path in self._written]
        files = None if program.is_of_lab else self.image_of(program.container)
        own = program.container or NOTHING_OWN
        if files is not None:
            box.make(files)
            assert box.root is not None
            assert box.user is not None
            files.check_program(box.root, program.command)
            image.give_files(box.user, [*volumes, *self._written])
            visible = [*visible, *(path for path in NAMES if path.exists())]
        elif self._root is not None:
            box.make(self._root)
        else:
            box.make(None)
            texts = [*program.command, *program.variables.values()]
            visible = [*visible, Path(sys.prefix), Path(sys.base_prefix)]
            visible += bundle.named(texts, self._written)
        box.start(
            bundle.Contents(
                volumes=[*volumes, *written],
                layered=layered,
                visible=visible,
                network=self._network.namespace if isinstance(self._network, Netns) else None,
                cpus=own.cpus or self.settings.cpus,
                memory=own.memory or self.settings.memory,
                root=box.root,
                mounts=box.mounts(own, self._hosts),
            )
        )


class Box:
    """One container."""

    def __init__(self, processes: Processes, program: Program) -> None:
        self.processes, self.program = processes, program
        self.name = f"tare-{os.getpid()}-{next(_numbers)}"
        self.layers: dict[Path, Path] = {}
        self.root: Path | None = None
        """The folder with all its files; None for those of this host."""
        self.user: dict[str, Any] | None = None
        """OCI's `user`; None for the user of tare."""
        self._image: image.Image | None = None
        self._runc_root = runtime_directory() / "runc"
        self._runc = runc(self._runc_root)
        self.folder = runtime_directory() / "containers" / self.name
        self._keeper: Process | None = None
        self._record: Record | None = None

    def layer(self, path: Path) -> Path:
        """Where OverlayFS stores what is written to a folder: on its file system, beside it."""
        self.layers[path] = path.parent / f"{path.name}~{self.name}"
        return self.layers[path]

    def make(self, files: Path | image.Image | None) -> None:
        """Makes its root of a folder or an image. Raises RunError with podman's complaint."""
        layer = self.folder / "root"
        undo = [
            (*self._runc, "delete", "--force", self.name),
            unmount_overlay(layer),
            ("rm", "-rf", "--one-file-system", str(self.folder), *map(str, self.layers.values())),
        ]
        if isinstance(files, image.Image):
            undo.insert(1, image.removal(self.name))
        self._record = record("container", self.name, undo)
        self.folder.mkdir(parents=True)
        self.folder.chmod(0o700)
        if isinstance(files, image.Image):
            self._image = files
            self.root = self._mount(files)
            self.user = image.user(self.root, files.user)
            if files.directory is not None:
                image.inside(self.root, str(files.directory)).mkdir(parents=True, exist_ok=True)
        elif files is not None:
            self.root = mount_overlay(files, layer)

    def _mount(self, files: image.Image) -> Path:
        """Mounts an image with a layer for what programs write, and returns where."""
        printed = self.folder / "image"
        process = self._start(
            "image", image.mount(files.name, self.name), self.folder / "image-log", printed
        )
        while process.code is None:
            self.processes.wait(0.02)
        if process.code:
            why = next(iter(last_lines(self.folder / "image-log", 1)), process.ending)
            raise RunError(f"podman could not mount image {files.name}: {why}")
        return Path(printed.read_text(encoding="utf-8").strip())

    def start(self, contents: bundle.Contents) -> None:
        """Starts the container. Raises RunError with runc's complaint."""
        bundle.write(self.folder, self.name, contents)
        log, up = self.folder / "log", self.folder / "pid"
        run = ["run", "--bundle", str(self.folder), "--pid-file", str(up), self.name]
        keeper = self._start("container", [*self._runc, *run], log)
        while not up.exists():
            self.processes.wait(0.02)
            if keeper.code is not None:
                why = next(iter(last_lines(log, 1)), keeper.ending)
                raise RunError(f"the container did not start: {why}")
        pid = int(up.read_text(encoding="utf-8"))
        self.running = RunningContainer(self._runc_root, self.name, pid, self.folder)

    def _start(
        self, what: str, words: Sequence[str], log: Path, printed: Path | None = None
    ) -> Process:
        """Starts a command that belongs to the supervisor, which removes all if tare ends."""
        assert self._record is not None
        process = self.processes.start(
            f"{self.program.name}/{what}",
            words,
            directory=self.folder,
            log=log,
            output=printed,
            cpus=self.program.cpus,
            stop_signal="KILL",
            undo=self._record.removal,
        )
        if self._keeper is not None:
            # From now on, the other process has what removes all.
            self.processes.stop([self._keeper])
        self._keeper = process
        return process

    def mounts(self, own: OwnContainer, hosts: Mapping[str, str]) -> dict[Path, Path]:
        """What the plan shows at another path, and the names of hosts."""
        found = {Path(path): Path(source) for path, source in own.mounts.items()}
        if hosts:
            names = found[HOSTS] = self.folder / "hosts"
            # The first line with a name counts.
            lines = "".join(f"{address} {name}\n" for name, address in hosts.items())
            known = HOSTS.read_text(encoding="utf-8") if HOSTS.exists() else LOCALHOST
            names.write_text(lines + known, encoding="utf-8")
        return found

    def words(self, words: Sequence[str], program: Program) -> list[str]:
        """The command of this host that runs a command as a program in the container."""
        if self._image is not None:
            variables = self._image.process_variables(program.variables)
        elif self.root is not None:
            variables = {"PATH": bundle.PATH, **program.variables}
        else:
            variables = variables_of(program.variables)
        process = bundle.process(words, program.directory, variables, self.user)
        return self.running.words(process)

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
