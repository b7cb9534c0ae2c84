# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes Pod made by podman: the load generator, the service and each of its proxies have
containers of their own, and one network with nothing but a loopback interface.

podman makes the containers of a manifest, and runc starts the programs in them, as `podman exec`
does: but signals reach them.
"""

import ctypes
import itertools
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.lab.environments import bundle, image, pod_files
from tare.lab.environments.environment import LOAD, Answer, Environment, Program
from tare.lab.environments.host import output
from tare.lab.environments.launch import RunError
from tare.lab.environments.minimal_elf import wait_program
from tare.lab.environments.overlay_mount import mount_overlay
from tare.lab.environments.pod_files import PodContainer, Volume
from tare.lab.environments.pod_removal import IDS, RUNC, undo
from tare.lab.environments.ports import OwnPorts
from tare.lab.environments.running import RunningContainer, printing_to_files
from tare.lab.processes.logs import last_lines
from tare.lab.processes.processes import Family, Process, Processes, find, search_path
from tare.native import native
from tare.plan import expected
from tare.proc import proc_lines
from tare.running.created_resources import Record, record
from tare.running.directory import runtime_directory

if TYPE_CHECKING:
    from tare.lab.environments.bridge_network import BridgeNetwork
    from tare.plan.schema.services import OwnContainer

_numbers = itertools.count(1)


class Pod(OwnPorts, Environment):
    """Programs in the containers of one pod, which is made when the first program starts."""

    def __init__(
        self,
        settings: Any,
        processes: Processes,
        name: str,
        bridge_network: "BridgeNetwork | None" = None,
    ) -> None:
        super().__init__(settings, processes, name, bridge_network)
        self.pod = f"tare-pod-{os.getpid()}-{next(_numbers)}"
        self._folder = runtime_directory() / "containers" / self.pod
        self._image = f"{pod_files.DOMAIN}/{self.pod}:latest"
        self._own_image: image.Image | None = None
        """That of the service."""
        self._written: list[Path] = []
        self._visible = [Path(native("", "")).parent]
        self._service = name
        """The name of the first program."""
        self._containers: dict[str, RunningContainer] = {}
        """By the name of the program."""
        self._processes_of: dict[str, dict[str, Any]] = {}
        """OCI's `process` of each container, by the name of the program."""
        self._record: Record | None = None
        self._play: Process | None = None

    @staticmethod
    def check(settings: Any) -> None:
        """Refuses without root, podman or runc, and if podman has no such image."""
        if os.geteuid() != 0:
            raise expected("root rights for a pod; use sudo")
        for program in ("podman", "runc", "conmon"):
            if find(program) is None:
                raise expected(f"{program} to be installed: get the packages podman and runc")
        if settings.image is not None:
            image.check(settings.image)

    def prepare(self) -> None:
        """Makes nothing yet: the files that a pod shows must be known before it is made."""
        if self.settings.image is not None:
            self._own_image = image.read_image(self.settings.image)

    @property
    def address(self) -> str:
        return "127.0.0.1"

    def copy_in(self, paths: Iterable[Path], read_only: Iterable[Path] = ()) -> None:
        """Has no effect on a pod that is made."""
        self._written += [path.absolute() for path in paths]
        self._visible += [path.absolute() for path in read_only]

    def image_of(self, _container: "OwnContainer | None") -> image.Image | None:
        return self._own_image

    def start(self, program: Program) -> Process:
        if not self._containers:
            self._make(program)
        container = self._containers[program.name]
        self._check_program(program)
        words = printing_to_files(program)
        process = self._process(program.name, words, program)
        self._give_files_to(process["user"], program.log)
        return self.processes.start(
            program.name,
            container.words(process),
            directory=self._folder,
            log=program.log,
            cpus=program.cpus,
            stop_signal=program.stop_signal,
            grace_s=program.grace_s,
            container=container.group,
        )

    def family(self, process: Process) -> Family:
        return self._containers[process.name].family()

    def exec(self, words: Sequence[str]) -> str:
        cpus = sorted(os.sched_getaffinity(0))
        program = Program(self._service, words, Path("/"), Path(os.devnull), cpus)
        if not self._containers:
            self._make(program)
        self._check_program(program)
        process = self._process(self._service, words, program)
        return output(self._containers[self._service].words(process), named=words)

    def in_network(self, ask: Callable[[], Answer]) -> Answer:
        """Calls a function in the pod's network: from outside, no address leads there."""
        answers: list[Answer] = []
        errors: list[BaseException] = []
        namespace = Path(f"/proc/{self._containers[LOAD].first}/ns/net")

        def call() -> None:
            # A namespace is that of a thread, and this thread ends.
            try:
                enter_network(namespace)
                answers.append(ask())
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
        for error in errors:
            raise error
        return answers[0]

    def pids_inside(self, pids: Sequence[int]) -> list[int]:
        return [number for pid in pids for number in _innermost(pid)]

    def generator_pids(self) -> list[int]:
        return [os.getpid(), self._containers[LOAD].first]

    def manifest(self) -> Path:
        return self._folder / "pod.json"

    def copy_out(self, paths: Iterable[Path]) -> None:
        """Containers write to folders of this host."""

    def stop(self) -> None:
        if self._record is not None:
            output(self._record.removal, named=["remove", self.pod])
            self._record = None
        if self._play is not None:
            self.processes.stop([self._play])
            self._play = None
        self._containers.clear()

    def _process(self, name: str, words: Sequence[str], program: Program) -> dict[str, Any]:
        """OCI's `process` of a program: as podman would start it in its container."""
        process = self._processes_of[name]
        variables = dict(each.split("=", 1) for each in process["env"] if "=" in each)
        if self._is_of_host(name):
            variables |= os.environ
        variables.setdefault("PATH", bundle.PATH)
        variables |= program.variables
        if self._is_of_host(name):
            variables["PATH"] = search_path(variables)
        return {
            **process,
            "args": [*words],
            "env": [f"{key}={value}" for key, value in variables.items()],
            "cwd": str(program.directory),
            "terminal": False,
        }

    def _check_program(self, program: Program) -> None:
        """Raises RunError if the image lacks what starts a program."""
        if self._own_image is not None and program.name == self._service:
            root = Path(f"/proc/{self._containers[program.name].first}/root")
            self._own_image.check_program(root, program.command)

    def _give_files_to(self, user: Mapping[str, int], log: Path) -> None:
        """Gives what a program writes to the user of its image."""
        if user["uid"] == os.geteuid():
            return
        log.touch()
        image.give_files(user, [log, *self._written])

    def _is_of_host(self, name: str) -> bool:
        """Whether a program has the files of this machine, and not those of the user's image."""
        return name != self._service or self.settings.image is None

    def _make(self, service: Program) -> None:
        """Makes the pod for a service and its proxies. Raises RunError with podman's complaint."""
        self._service = service.name
        podman, layer = image.podman(), self._folder / "var"
        removal = undo(podman, self.pod, self._image, layer)
        self._record = record("pod", self.pod, removal)
        self._folder.mkdir(parents=True)
        self._folder.chmod(0o700)
        # A server may write what its configuration has no place for, and the mounts of other pods
        # below /var are not kept busy.
        mount_overlay(Path("/var"), layer)
        programs = {service.name: "service", LOAD: "load"}
        for proxy in service.proxies:
            programs[f"{service.name}/{proxy.name}"] = proxy.name
        names = {
            program: pod_files.container_name(short, number)
            for number, (program, short) in enumerate(programs.items(), 1)
        }
        containers = [
            self._container(program, name, service, layer) for program, name in names.items()
        ]
        self._write_files(pod_files.manifest(self.pod, containers))
        self._run(
            "image", *podman, "import", "--quiet", "--change",
            f"ENTRYPOINT {json.dumps([str(bundle.WAIT)])}",
            str(self._folder / "root.tar"), self._image,
        )  # fmt: skip
        self._play = self._run(
            "pod", *podman, "kube", "play", "--network", "none", str(self._folder / "pod.json")
        )
        self._find_containers(names)

    def _find_containers(self, names: Mapping[str, str]) -> None:
        """Finds the containers that podman made, by the names of programs."""
        found = json.loads(output([*image.podman(), "pod", "inspect", self.pod]))
        ids = {container["Name"]: container["Id"] for container in found["Containers"]}
        lines = "".join(f"{identifier}\n" for identifier in (found["Id"], *ids.values()))
        (self._folder / IDS).write_text(lines, encoding="utf-8")
        inspected = json.loads(output([*image.podman(), "inspect", *ids.values()]))
        assert self._play is not None
        self.processes.spare(
            self._play, [container["State"]["ConmonPid"] for container in inspected]
        )
        by_id = {container["Id"]: container for container in inspected}
        for program, name in names.items():
            container = by_id[ids[f"{self.pod}-{name}"]]
            config = json.loads(Path(container["OCIConfigPath"]).read_bytes())
            self._processes_of[program] = config["process"]
            pid = int(container["State"]["Pid"])
            self._containers[program] = RunningContainer(RUNC, container["Id"], pid, self._folder)

    def _run(self, what: str, *words: str) -> Process:
        """Runs podman to its end. It belongs to the supervisor, which removes what it made if tare
        ends."""
        assert self._record is not None
        log = self._folder / f"{what}.log"
        process = self.processes.start(
            f"{self.name}/{what}",
            words,
            directory=self._folder,
            log=log,
            cpus=sorted(os.sched_getaffinity(0)),
            environment={"CONTAINERS_CONF": str(self._folder / "containers.conf")},
            stop_signal="KILL",
            undo=self._record.removal,
        )
        if self._play is None:
            self._play = process
        while process.code is None:
            self.processes.wait(0.02)
        if process.code:
            raise RunError(f"podman could not make the {what}: {_complaint(log, process)}")
        if self._play is not process:
            # From now on, the other process has what removes all.
            self.processes.stop([self._play])
        return process

    def _container(self, program: str, name: str, service: Program, var: Path) -> PodContainer:
        settings, of_load = self.settings, program == LOAD
        if self._is_of_host(program):
            volumes, image = pod_files.host_volumes(var / "merged"), self._image
            texts = [*service.command, *service.variables.values()]
            texts += [word for proxy in service.proxies for word in proxy.command]
            python = [Path(sys.prefix), Path(sys.base_prefix)]
            visible = [*self._visible, *python, *bundle.named(texts, self._written)]
            visible = [path for path in visible if bundle.is_hidden(path)]
        else:
            volumes, image = [Volume(self._folder / "wait", bundle.WAIT)], settings.image
            visible = self._visible
        given = {path: Volume(path, path) for path in visible}
        logs = [] if service.log == Path(os.devnull) else [service.log.absolute().parent]
        given |= {path: Volume(path, path, read_only=False) for path in [*self._written, *logs]}
        for path in given:
            if ":" in str(path):
                raise RunError(f"a pod cannot show {path}: Kubernetes allows no colon in a path")
        return PodContainer(
            name,
            image,
            [*volumes, *given.values()],
            settings.load_cpus if of_load else settings.cpus,
            None if of_load else settings.memory,
        )

    def _write_files(self, manifest: dict[str, Any]) -> None:
        folder = self._folder
        (folder / "wait").write_bytes(wait_program())
        (folder / "wait").chmod(0o755)
        (folder / "containers.conf").write_text(
            pod_files.configuration(self._image), encoding="utf-8"
        )
        (folder / "pod.json").write_text(json.dumps(manifest), encoding="utf-8")
        pod_files.write_image(folder / "root.tar")


def _complaint(log: Path, process: Process) -> str:
    """What podman says first, without the ID of the container."""
    lines = [line for line in last_lines(log, 50) if line]
    first = next((line for line in lines if line.startswith("[starting container")), None)
    if first is not None:
        return first.partition(": ")[2].rstrip("]")
    return lines[-1].removeprefix("Error: ") if lines else process.ending


def enter_network(namespace: Path) -> None:
    """Moves the calling thread to a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with namespace.open("rb") as file:
        if libc.setns(file.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(namespace))


_CLONE_NEWNET = 0x40000000


def _innermost(pid: int) -> Iterable[int]:
    """The number of a process in its own PID namespace; none if it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_bytes()
    except OSError:
        return
    for line in proc_lines(status):
        if line.startswith("NSpid:"):
            yield int(line.split()[-1])
