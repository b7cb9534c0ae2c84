# SPDX-License-Identifier: Apache-2.0
"""The lab's side of the supervisor: starts commands, watches them, stops them."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tare.atomic_files import regular_file
from tare.errors import TareError
from tare.lab.processes import subreaper, supervisor

GRACE_S = 5.0
ANSWER_LIMIT_S = 120.0
"""The supervisor answers at once, and a process that was killed ends at once, unless the kernel
keeps it. But a virtual machine can be without one of its CPUs for half a minute."""

_TREE = "process tree"


class StartError(Exception):
    """A command could not be started; the message says which file and why."""


@dataclass
class Process:
    """A started command; `code` is its exit code, negative for a signal, None while it runs."""

    name: str
    pid: int
    code: int | None = None
    grace_s: float = GRACE_S
    """From its stop signal until it is killed."""

    @property
    def ending(self) -> str:
        """How it ended, for a person."""
        if self.code is None:
            return "still runs"
        if self.code < 0:
            names = {member.value: member.name for member in signal.Signals}
            # Most of the real-time signals have no name.
            return f"was killed by {names.get(-self.code, f'signal {-self.code}')}"
        return f"exited with code {self.code}"


@dataclass(frozen=True)
class Family:
    """The processes of a command and the CPU time that it used since its start."""

    pids: list[int]
    cpu_ns: int
    first: Process | None = None
    """The process that the supervisor started; None in a container, whose runtime starts it."""


class Processes:
    """Every process of an experiment, held by a supervisor; leaving the context stops them all."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._pending = b""
        self._living: dict[str, Process] = {}
        self._answers: dict[str, dict[str, Any]] = {}
        self.accounting = _TREE
        """Where CPU time of a command comes from: `cgroup2`, `cgroup1 cpuacct`, `process tree`."""

    def __enter__(self) -> Self:
        # Should the guard be killed, its children come to this process and can be found.
        self._was_subreaper = supervisor.set_subreaper(True)
        self._strangers = set(supervisor.descendants(os.getpid()))
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        with os.fdopen(regular_file(self._log, flags), "ab") as log:
            self._supervisor = subprocess.Popen(
                [sys.executable, "-I", "-S", subreaper.__file__, supervisor.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert self._supervisor.stdin is not None
        assert self._supervisor.stdout is not None
        self._commands = self._supervisor.stdin.fileno()
        self._events = self._supervisor.stdout.fileno()
        self.accounting = self._answer("up")["cgroup"] or self.accounting
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for pipe in (self._supervisor.stdin, self._supervisor.stdout):
            assert pipe is not None
            pipe.close()
        try:
            self._supervisor.wait(supervisor.LIMIT_S + 1)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()
            self._supervisor.wait()
        self._kill_orphans()
        # Others may go on in this process, and wait for none but their own children.
        supervisor.set_subreaper(self._was_subreaper)

    @property
    def pid(self) -> int:
        """Of the guard, from which all commands descend."""
        return self._supervisor.pid

    @property
    def in_ticks(self) -> bool:
        """Whether CPU time comes in clock ticks."""
        return self.accounting == _TREE

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        directory: Path,
        log: Path,
        cpus: Sequence[int],
        environment: Mapping[str, str] | None = None,
        output: Path | None = None,
        stop_signal: str = "TERM",
        grace_s: float = GRACE_S,
        undo: Sequence[str] | None = None,
        container: tuple[Path, int] | None = None,
    ) -> Process:
        """Starts a command on some CPUs; its output goes to `log`, or stdout to `output`.

        The supervisor runs the command `undo` if tare ends before this command was stopped. All
        processes in the control group `container` belong to this command, except for the given
        PID. Raises StartError where there is no such program or folder.
        """
        variables = {**os.environ, **(environment or {})}
        variables["PATH"] = search_path(variables)
        self._tell(
            do="start",
            name=name,
            command=list(command),
            directory=str(directory),
            environment=variables,
            log=str(log),
            output=str(output) if output else None,
            cpus=list(cpus),
            stop_signal=stop_signal,
            grace_s=grace_s,
            undo=None if undo is None else list(undo),
            container=None if container is None else [str(container[0]), container[1]],
        )
        answer = self._answer("started", "failed", name=name)
        if answer["event"] == "failed":
            raise StartError(answer["error"])
        process = self._living[name]
        process.grace_s = grace_s
        return process

    def stop(self, processes: Sequence[Process], *, keep: bool = False) -> None:
        """Stops commands, all at once, each with its own signal; returns when none is left.

        With `keep` the supervisor still undoes them if tare ends, until they are stopped again.
        Raises TareError where a command does not even end by SIGKILL.
        """
        living = [process for process in processes if process.name in self._living]
        for process in living:
            self._tell(do="stop", name=process.name, keep=keep)
        for process in living:
            until = time.monotonic() + process.grace_s + ANSWER_LIMIT_S
            while f"stopped {process.name}" not in self._answers:
                if time.monotonic() > until:
                    raise TareError(
                        f"{process.name} (process {process.pid}) does not end, although it got"
                        f" SIGKILL {ANSWER_LIMIT_S:g} s ago: the kernel does not let it go"
                    )
                self.wait(0.2)
            del self._answers[f"stopped {process.name}"]
            if not keep:
                del self._living[process.name]

    def spare(self, process: Process, pids: Sequence[int]) -> None:
        """Has the supervisor leave other processes, with their descendants, to the command that
        undoes this process."""
        self._tell(do="spare", name=process.name, pids=list(pids))

    def sweep(self) -> int:
        """Kills what broke away from the commands that started it; returns how many there were."""
        self._tell(do="sweep")
        return int(self._answer("swept", name="")["count"])

    def family(self, process: Process) -> Family:
        """The living processes of a command, and its CPU time so far."""
        self._tell(do="family", name=process.name)
        answer = self._answer("family", name=process.name)
        return Family(answer["pids"], answer["cpu_ns"], process)

    def wait(self, timeout_s: float) -> None:
        """Waits until something happens to a command, or until the time is over."""
        readable, _, _ = select.select([self._events], [], [], timeout_s)
        if readable:
            self._read()

    def _answer(self, *events: str, name: str | None = None) -> dict[str, Any]:
        until = time.monotonic() + ANSWER_LIMIT_S
        while time.monotonic() < until:
            for event in events:
                answer = self._answers.pop(f"{event} {name}", None)
                if answer:
                    return answer
            self.wait(0.2)
        raise TareError(f"the supervisor does not answer; see {self._log}")

    def _tell(self, **message: Any) -> None:
        try:
            data = json.dumps(message).encode() + b"\n"
            while data:
                data = data[os.write(self._commands, data) :]
        except BrokenPipeError:
            self._lost()

    def _read(self) -> None:
        data = os.read(self._events, 65536)
        if not data:
            self._lost()
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            event = json.loads(line)
            name = event.get("name")
            if event["event"] == "started":
                self._living[name] = Process(name, event["pid"])
            if event["event"] == "exited":
                if name in self._living:
                    self._living[name].code = event["code"]
            else:
                self._answers[f"{event['event']} {name}"] = event

    def _lost(self) -> None:
        self._supervisor.wait()
        raise TareError(
            f"the supervisor ended early (code {self._supervisor.returncode}), and all processes"
            f" that it had started were stopped; see {self._log}, then continue with --resume"
        )

    def _kill_orphans(self) -> None:
        """Kills what a killed supervisor left behind: it descends from this process now."""
        until = time.monotonic() + supervisor.LIMIT_S
        while left := set(supervisor.descendants(os.getpid())) - self._strangers:
            supervisor.send(signal.SIGKILL, left)
            if time.monotonic() > until:
                break
            time.sleep(supervisor.POLL_S)


def search_path(variables: Mapping[str, str]) -> str:
    """PATH, then where an ordinary user's does not look: for nginx and its like, and beside the
    interpreter for what came from PyPI (envoy).

    Every command of an experiment gets it, so that a program is found behind other words too.
    """
    beside = Path(sys.executable).parent
    return f"{variables.get('PATH', os.defpath)}:/usr/sbin:/sbin:{beside}"


def variables_of(more: Mapping[str, str]) -> dict[str, str]:
    """The variables of a program that has `more` than tare itself."""
    variables = {**os.environ, **more}
    return variables | {"PATH": search_path(variables)}


def find(program: str, variables: Mapping[str, str] = os.environ) -> str | None:
    """The file of a program as an experiment with these variables would find it, or None."""
    return shutil.which(program, path=search_path(variables))
