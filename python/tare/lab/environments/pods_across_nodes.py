# SPDX-License-Identifier: Apache-2.0
"""Two pods on different nodes of a Kubernetes cluster, made by kubectl: the service with a
container for each proxy, and the load generator.

The containers have the files of their images. Each program is represented on this host by a
`cluster.client`, and files are carried to the pods and back.
"""

import itertools
import json
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.lab.environments.cluster import client, files
from tare.lab.environments.cluster import manifest as manifests
from tare.lab.environments.cluster.kubectl import (
    call,
    complaint,
    kubectl,
    may_not,
    nodes,
    printed,
    resolved,
    to_keep,
)
from tare.lab.environments.cluster.manifest import ClusterPod
from tare.lab.environments.cluster.reader import ContainerWatch, Reader
from tare.lab.environments.cluster.status import (
    LISTENERS,
    READ,
    counters,
    status,
    why_not_listening,
)
from tare.lab.environments.environment import LOAD, Answer, Attempt, Environment, Program
from tare.lab.environments.host import output
from tare.lab.environments.launch import RunError
from tare.lab.environments.ports import OwnPorts
from tare.lab.processes.logs import last_lines
from tare.lab.processes.processes import Family, Process, Processes, find
from tare.native import native
from tare.plan import expected
from tare.running.created_resources import Record, record
from tare.running.directory import runtime_directory

if TYPE_CHECKING:
    from tare.lab.environments.bridge_network import BridgeNetwork

START_S, UNSCHEDULABLE_S = 300, 60
"""Until all containers run, and until a node takes each pod."""
LOOK_S = 0.5
_numbers = itertools.count(1)
_PYTHON = [sys.executable, "-I", "-S"]
_NO_PROGRAMS = (".a", ".h", ".hpp", ".pc")
"""Native parts that are for compilers."""
_OF_IMAGES = tuple(
    Path(name)
    for name in (
        "/", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys",
        "/usr", "/usr/bin", "/usr/lib", "/usr/local", "/usr/sbin", "/var",
    )
)  # fmt: skip
"""Folders that an empty folder must not hide: the programs of an image need them."""


class PodsAcrossNodes(OwnPorts, Environment):
    """Programs in the containers of two pods, which are made when the first of them is needed."""

    def __init__(
        self,
        settings: Any,
        processes: Processes,
        name: str,
        bridge_network: "BridgeNetwork | None" = None,
    ) -> None:
        super().__init__(settings, processes, name, bridge_network)
        # Other machines may use the same cluster.
        self.run = f"tare-{os.getpid()}-{next(_numbers)}-{secrets.token_hex(4)}"
        self._folder = runtime_directory() / "pods" / self.run
        self._pods = {kind: f"{self.run}-{kind}" for kind in (manifests.SERVICE, manifests.LOAD)}
        self._kubectl: list[str] = []
        self._native = Path(native("", "")).parent
        self._written: list[Path] = []
        self._visible: list[Path] = []
        self._proxies = 0
        self._service = name
        """The name of the first program."""
        self._proxy_names: list[str] = []
        self._carried: dict[str, files.Carried] = {}
        """By the kind of pod."""
        self._of_load: Path | None = None
        """The folder of the load generator, which is in its own pod."""
        self._readers: dict[tuple[str, str], Reader] = {}
        """By the kind of pod and the container."""
        self._addresses: Mapping[str, str] = {}
        self._record: Record | None = None
        self._keeper: Process | None = None

    @staticmethod
    def check(settings: Any) -> None:
        """Refuses without kubectl, a cluster with two nodes that take pods, or the right to make
        pods there."""
        if find("kubectl") is None:
            raise expected("kubectl to be installed, with a cluster that it reaches")
        words = kubectl(settings.context, settings.namespace)
        try:
            known = nodes(words)
        except RunError as error:
            raise expected(f"a Kubernetes cluster that kubectl reaches ({error})") from error
        for name in settings.nodes or ():
            if name not in known:
                raise expected(f"nodes of the cluster ({', '.join(known)}), not {name}", "nodes")
            if not known[name]:
                raise expected(f"nodes that take pods now, unlike {name}")
        if sum(known.values()) < len(manifests.KINDS):
            raise expected(
                f"a Kubernetes cluster with two nodes that take pods (found {sum(known.values())})"
            )
        if what := may_not(words):
            raise expected(f"the right to {what} in the namespace of the cluster")

    def prepare(self) -> None:
        """Makes nothing yet: the files that the pods get must be known before they are made."""
        self._kubectl = resolved(self.settings)

    def announce(self, paths: Iterable[Path], read_only: Iterable[Path], proxies: int) -> None:
        self._proxies = proxies
        self.copy_in(paths, read_only)

    @property
    def address(self) -> str:
        self._make()
        return self._addresses[self._pods[manifests.SERVICE]]

    def copy_in(self, paths: Iterable[Path], read_only: Iterable[Path] = ()) -> None:
        """Carries nothing yet. Of `read_only`, programs get what their words name.

        Has no effect on pods that are made, but on files in folders that they have.
        """
        for known, given in ((self._written, paths), (self._visible, read_only)):
            known += [path for each in given if (path := each.absolute()) not in known]

    def start(self, program: Program) -> Process:
        self._make()
        kind, container = self._place(program)
        texts = [*program.command, *program.variables.values()]
        if kind == manifests.LOAD:
            self._of_load = program.directory
            self._carry(kind, [program.directory], texts)
        else:
            self._carry(kind, self._written, texts)
        variables = [f"{name}={value}" for name, value in program.variables.items()]
        words = ["sh", "-c", client.RUN, client.BEGIN, str(program.directory), *variables, "--"]
        return self.processes.start(
            program.name,
            [
                *(*_PYTHON, client.__file__, *self._exec(kind, container, stdin=True)),
                *(*words, *program.command),
            ],
            directory=self._folder,
            log=program.log,
            output=program.output,
            cpus=program.cpus,
            stop_signal=program.stop_signal,
            grace_s=program.grace_s,
        )

    def family(self, process: Process) -> Family:
        """No process of this host, and the CPU time of the container; 0 if it does not count."""
        kind, container = self._place_of(process.name)
        return Family([], self._counters(kind, [container]).get("cpu_time", 0))

    def pids(self, _process: Process) -> list[int]:
        return []

    def exec(self, words: Sequence[str]) -> str:
        return self._run(manifests.SERVICE, words)

    def exec_at_load(self, words: Sequence[str]) -> str:
        return self._run(manifests.LOAD, words)

    def in_network(self, _ask: Callable[[], Answer]) -> Answer:
        raise RunError("no program of this machine can be moved to the network of another machine")

    def why_not_ready(self, attempt: Attempt) -> str | None:
        """Asks with a program in the pod of the load generator: from this host, no route need lead
        to the addresses of pods."""
        if attempt.path is None:
            words = [*self._exec(manifests.SERVICE, manifests.SERVICE), "sh", "-c", LISTENERS]
            return why_not_listening(printed(words, named=["/proc/net/tcp"]), attempt.port)
        program = native("bin", "tare-load")
        words = [
            program, "http", f"http://{attempt.endpoint}{attempt.path}", "--json",
            "--requests", "1", "--warmup", "0s", "--users", "1",
            "--expect-status", str(attempt.status), "--timeout", f"{attempt.limit_s:g}s",
        ]  # fmt: skip
        self._carry(manifests.LOAD, [], words)
        done = call([*self._exec(manifests.LOAD, manifests.LOAD), *words])
        try:
            (target,) = json.loads(done.stdout)["targets"]
            if target["requests"] > target["errors"]:
                return None
            why = ", ".join(target.get("errors_by_kind") or {})
        except (ValueError, KeyError):  # it found no server there
            why = complaint(done.stderr)
        return f"{attempt.named}: {why or 'no response'}"

    def watch(self, _pids: Sequence[int]) -> ContainerWatch:
        return ContainerWatch(lambda: self._counters(manifests.SERVICE, self._of_service()))

    def watch_generator(self) -> ContainerWatch:
        return ContainerWatch(lambda: self._counters(manifests.LOAD, [manifests.LOAD]))

    def manifest(self) -> Path:
        return self._folder / "pods.json"

    def copy_out(self, paths: Iterable[Path]) -> None:
        if not self._addresses:
            return
        wanted: dict[str, list[Path]] = {kind: [] for kind in manifests.KINDS}
        for path in (each.absolute() for each in paths):
            of_load = self._of_load is not None and path.is_relative_to(self._of_load)
            wanted[manifests.LOAD if of_load else manifests.SERVICE].append(path)
        for kind, mine in wanted.items():
            if mine:
                files.bring(self._exec(kind, kind), mine)

    def stop(self) -> None:
        self._addresses = {}
        while self._readers:
            self._readers.popitem()[1].close()
        if self._record is not None:
            output(self._record.removal, named=["remove", self.run])
            self._record = None
        if self._keeper is not None:
            self.processes.stop([self._keeper])
            self._keeper = None

    def _of_service(self) -> list[str]:
        """The containers of the service and its proxies."""
        proxies = (manifests.proxy(number) for number in range(1, self._proxies + 1))
        return [manifests.SERVICE, *proxies]

    def _place(self, program: Program) -> tuple[str, str]:
        """The kind of pod and the container of a program that is about to start."""
        if program.proxies:
            self._service = program.name
            self._proxy_names = [f"{program.name}/{proxy.name}" for proxy in program.proxies]
        return self._place_of(program.name)

    def _place_of(self, program: str) -> tuple[str, str]:
        if program == LOAD:
            return manifests.LOAD, manifests.LOAD
        if program in self._proxy_names:
            return manifests.SERVICE, manifests.proxy(self._proxy_names.index(program) + 1)
        return manifests.SERVICE, manifests.SERVICE

    def _exec(self, kind: str, container: str, *, stdin: bool = False) -> list[str]:
        """The words that run a command in a container."""
        options = ["--stdin"] if stdin else []
        where = [self._pods[kind], f"--container={container}", "--"]
        return [*self._kubectl, "exec", *options, *where]

    def _run(self, kind: str, words: Sequence[str]) -> str:
        self._make()
        self._carry(kind, self._written if kind == manifests.SERVICE else [], words)
        return printed([*self._exec(kind, kind), *words], named=words)

    def _carry(self, kind: str, paths: Iterable[Path], texts: Iterable[str]) -> None:
        """Carries files to a pod, and those of the plan and of Tare that words name."""
        known = [*texts]
        found = [*paths, *files.named(known, self._visible)]
        if any(str(self._native) in text for text in known):
            found += [
                path
                for path in files.below(self._native)
                if path.suffix not in _NO_PROGRAMS and not path.is_dir()
            ]
        for path in found:
            if not any(path.is_relative_to(folder) for folder in self._folders()):
                raise RunError(f"a pod cannot get {path}: put it into a folder of its own")
        self._carried[kind].carry(self._exec(kind, kind, stdin=True), found)

    def _folders(self) -> list[Path]:
        """Where pods have empty folders for files of this host; none is below another."""
        folders = {self._native, *self._written, *self._visible}
        return sorted(
            path
            for path in folders - {*_OF_IMAGES}
            if not any(other in path.parents for other in folders - {*_OF_IMAGES})
        )

    def _counters(self, kind: str, containers: Iterable[str]) -> dict[str, int]:
        """The sums of what the control groups of containers count."""
        found: dict[str, int] = {}
        for container in containers:
            reader = self._readers.get((kind, container))
            if reader is None:
                reader = Reader(self._exec(kind, container, stdin=True), READ)
                self._readers[kind, container] = reader
            for name, value in counters(reader.read()).items():
                found[name] = found.get(name, 0) + value
        return found

    def _make(self) -> None:
        """Makes the pods and waits for them. Raises RunError with what the cluster says."""
        if self._addresses:
            return
        folders = self._folders()
        for path in folders:
            if ":" in str(path):
                raise RunError(f"a pod cannot have {path}: Kubernetes allows no colon in a path")
        removal = [
            to_keep([
                *self._kubectl, "delete", "pod", *self._pods.values(), "--ignore-not-found",
                "--grace-period=0", "--force", "--wait=false",
            ]),
            ("rm", "-rf", "--one-file-system", str(self._folder)),
        ]  # fmt: skip
        self._record = record("pods-across-nodes", self.run, removal)
        self._folder.mkdir(parents=True)
        self._folder.chmod(0o700)
        file = self._folder / "asked.json"
        file.write_text(json.dumps(self._asked(folders)), encoding="utf-8")
        self._create(file)
        self._addresses = self._wait_until_up()
        self._carried = {kind: files.Carried(folders) for kind in manifests.KINDS}

    def _asked(self, folders: Sequence[Path]) -> dict[str, Any]:
        """The manifest that the cluster gets."""
        settings = self.settings
        of_service, of_load = settings.nodes or (None, None)
        service = ClusterPod(
            self._pods[manifests.SERVICE], settings.image, self._of_service(), folders,
            settings.cpus, settings.memory, of_service,
        )  # fmt: skip
        load = ClusterPod(
            self._pods[manifests.LOAD], settings.load_image or settings.image, [manifests.LOAD],
            folders, settings.load_cpus, None, of_load,
        )  # fmt: skip
        return manifests.manifest(self.run, [service, load])

    def _create(self, file: Path) -> None:
        """Has the cluster make the pods. The process belongs to the supervisor, which removes them
        if tare ends."""
        assert self._record is not None
        log = self._folder / "create.log"
        self._keeper = create = self.processes.start(
            f"{self.name}/pods",
            [*self._kubectl, "create", f"--filename={file}"],
            directory=self._folder,
            log=log,
            cpus=sorted(os.sched_getaffinity(0)),
            stop_signal="KILL",
            undo=self._record.removal,
        )
        while create.code is None:
            self.processes.wait(0.02)
        if create.code:
            why = next(iter(last_lines(log, 1)), create.ending)
            raise RunError(f"the cluster did not take the pods: {why}")

    def _wait_until_up(self) -> Mapping[str, str]:
        """The addresses of the pods when all their containers run."""
        begun = time.monotonic()
        asked = [*self._kubectl, "get", "pod", *self._pods.values(), "--output=json"]
        while True:
            listed = printed(asked)
            try:
                found = status(json.loads(listed)["items"])
            except (ValueError, KeyError) as error:
                raise RunError(f"kubectl: its list of pods cannot be read: {error}") from error
            if not found.waits_for:
                self.manifest().write_text(listed, encoding="utf-8")
                return found.addresses
            age = time.monotonic() - begun
            if found.is_final:
                raise RunError(f"the pods did not start: {found.waits_for}")
            limit_s = UNSCHEDULABLE_S if found.has_no_node else START_S
            if age > limit_s:
                raise RunError(f"the pods did not start in {limit_s} s: {found.waits_for}")
            self.processes.wait(LOOK_S)
