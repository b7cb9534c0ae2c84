# SPDX-License-Identifier: Apache-2.0
"""Agents that observe the whole machine: switches them on and off for the turns of a condition."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tare.atomic_files import empty
from tare.lab.environments.launch import RunError
from tare.lab.processes.logs import last_lines
from tare.lab.processes.processes import Process, Processes, StartError
from tare.plan.schema.layers import AgentLayer
from tare.plan.schema.placeholders import fill

_POLL_S = 0.05
"""Between two questions whether an agent is ready."""


class AgentError(RunError):
    """An agent failed; the conditions without it can count."""


@dataclass
class Agent:
    """One agent of one condition in one block.

    `name` is unique in the experiment: processes, the log and what the plan calls `{name}` have
    it, with the number of the turn.
    """

    layer: AgentLayer
    name: str
    processes: Processes
    cpus: Sequence[int]
    log: Path
    """Begins anew in each turn: the turn that failed is the last."""
    fresh_folder: Callable[[], Path]
    values: Mapping[str, object]
    """What the plan may name in braces, besides what an agent has of its own."""
    process: Process | None = None
    _turn: int = field(default=0, init=False)
    _is_on: bool = field(default=False, init=False)
    _values: dict[str, object] = field(default_factory=dict, init=False)

    def switch_on(self) -> None:
        """Starts the agent and returns when it is ready. Raises AgentError where it fails."""
        self._turn += 1
        folder = self.fresh_folder()
        empty(self.log)
        self._values = {
            **self.values, "name": f"{self.name}-{self._turn}", "dir": folder, "log": self.log,
        }  # fmt: skip
        stop = None if self.layer.stop is None else self._filled(self.layer.stop)
        self.process = self._start(
            "", self._filled(self.layer.start), self.log, stop_signal=self.layer.stop_signal,
            grace_s=self.layer.stop_timeout / 1e9, undo=stop,
        )  # fmt: skip
        if self.layer.ready is not None:
            self._wait_until_ready(self._filled(self.layer.ready))
        self.check()
        self._is_on = True

    def check(self) -> None:
        """Raises AgentError where the agent has ended."""
        self.processes.wait(0)
        if why := self._why_ended():
            raise AgentError(f"{self.layer.name}: {why}{self._said()}")

    def check_ready(self) -> None:
        """Raises AgentError where the agent has ended, or is an agent that runs elsewhere
        and is not ready any more."""
        self.check()
        if self.layer.stop is not None and self.layer.ready is not None:
            asked = self._run("ready", self._filled(self.layer.ready), self.layer.timeout / 1e9)
            if asked.code != 0:
                raise AgentError(
                    f"{self.layer.name}: no longer ready at the end of its turn{self._said()}"
                )

    def cpu_ns(self) -> int | None:
        """CPU time of its processes so far; None for an agent that runs elsewhere."""
        if self.process is None or self.layer.stop is not None:
            return None
        return self.processes.family(self.process).cpu_ns

    def switch_off(self) -> None:
        """Stops the agent; returns when nothing of it is left.

        Raises RunError where its `stop` fails, unless `start` had failed: it may still disturb the
        others.
        """
        if self.process is None:
            return
        why, may_run = None, self.process.code in (None, 0)
        if self.layer.stop is not None:
            if not self._is_on:
                # What `start` does after `stop` would stay. Where this is interrupted, the
                # supervisor runs `stop`, too.
                self.processes.stop([self.process], keep=True)
            why = self._run_stop(self.layer.stop)
        self.processes.stop([self.process])
        self.process, self._is_on = None, False
        if why and may_run:
            raise RunError(why)

    def _run_stop(self, words: Sequence[str]) -> str | None:
        """What is wrong where the command fails."""
        try:
            done = self._run("stop", self._filled(words), self.layer.timeout / 1e9)
        except AgentError as error:
            return f"{self.layer.name}: its stop command did not start: {error.__cause__}"
        if done.code == 0:
            return None
        how = "did not exit" if done.code is None else done.ending
        return f"{self.layer.name}: its stop command {how}{self._said('stop')}"

    def _wait_until_ready(self, words: list[str]) -> None:
        seconds = self.layer.timeout / 1e9
        until = time.monotonic() + seconds
        while self._run("ready", words, until - time.monotonic()).code != 0:
            if why := self._why_ended():
                raise AgentError(f"{self.layer.name}: {why} before it was ready{self._said()}")
            if time.monotonic() > until:
                raise AgentError(f"{self.layer.name}: not ready within {seconds:g} s{self._said()}")
            self.processes.wait(_POLL_S)

    def _why_ended(self) -> str | None:
        code = None if self.process is None else self.process.code
        if self.process is None or code is None or (code == 0 and self.layer.stop is not None):
            return None
        return self.process.ending

    def _said(self, part: str = "ready") -> str:
        """What it printed last, or else what the command beside it printed last."""
        for log in (self.log, self._log_of(part)):
            for line in last_lines(log, 1):
                return f": {line}"
        return f"; {self.log} is empty"

    def _log_of(self, part: str) -> Path:
        return self.log.with_name(f"{self.log.stem}-{part}.log")

    def _run(self, part: str, words: list[str], seconds: float) -> Process:
        """Runs a command to its end, or stops it after some time; then it has no code."""
        log = self._log_of(part)
        empty(log)
        until = time.monotonic() + seconds
        process = self._start(f"/{part}", words, log)
        try:
            while process.code is None and time.monotonic() < until:
                self.processes.wait(min(0.1, max(until - time.monotonic(), 0)))
        finally:
            ended = Process(process.name, process.pid, process.code)
            self.processes.stop([process])
        return ended

    def _start(self, part: str, words: list[str], log: Path, **how: Any) -> Process:
        try:
            return self.processes.start(
                f"{self.name}/{self._turn}{part}",
                words,
                directory=Path(str(self._values["dir"])),
                log=log,
                cpus=self.cpus,
                **how,
            )
        except StartError as error:
            raise AgentError(f"{self.layer.name}: {error}") from error

    def _filled(self, words: Sequence[str]) -> list[str]:
        return [fill(word, self._values) for word in words]
