# SPDX-License-Identifier: Apache-2.0
"""This host itself, addressed over loopback."""

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tare.lab.environments.environment import Environment, Program
from tare.lab.environments.launch import RunError
from tare.lab.environments.ports import free_port, why_taken
from tare.lab.processes.processes import Family, Process, variables_of


class Host(Environment):
    """Programs are processes of this host, and share its files."""

    @staticmethod
    def check(_settings: Any) -> None:
        """This host always exists."""

    def prepare(self) -> None:
        """Nothing to create."""

    @property
    def address(self) -> str:
        return "127.0.0.1"

    @property
    def host_address(self) -> str:
        return self.address

    @property
    def prefix(self) -> tuple[str, ...]:
        """The words that lead a command into the environment."""
        return ()

    def free_port(self) -> int:
        return free_port(self.address)

    def port(self, fixed: int | None) -> int:
        if fixed is None:
            return self.free_port()
        if why := why_taken(self.address, fixed):
            raise RunError(
                f"port {fixed} of {self.address}: {why}; find the program with"
                f" 'ss -ltnp sport = :{fixed}'"
            )
        return fixed

    def copy_in(self, paths: Iterable[Path], read_only: Iterable[Path] = ()) -> None:
        """Programs see the files of this host."""

    def start(self, program: Program) -> Process:
        return self.processes.start(
            program.name,
            [*self.prefix, *program.command],
            directory=program.directory,
            log=program.log,
            cpus=program.cpus,
            environment=program.variables,
            stop_signal=program.stop_signal,
            grace_s=program.grace_s,
            output=program.output,
        )

    def family(self, process: Process) -> Family:
        return self.processes.family(process)

    def exec(self, words: Sequence[str]) -> str:
        return output([*self.prefix, *words])

    def copy_out(self, paths: Iterable[Path]) -> None:
        """This host sees the files of programs."""

    def stop(self) -> None:
        """Nothing to remove."""


def output(
    words: Sequence[str], named: Sequence[str] | None = None, limit_s: float | None = None
) -> str:
    """What a command of this host prints; raises RunError with its complaint, and with other words
    for the command if they are given. After `limit_s` it is killed."""
    try:
        done = subprocess.run(
            words,
            env=variables_of({}),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=limit_s,
        )
    except OSError as error:
        raise RunError(f"{words[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise RunError(f"{' '.join(named or words)}: no end within {limit_s:g} s") from error
    if done.returncode:
        why = done.stderr.strip() or f"exit code {done.returncode}"
        raise RunError(f"{' '.join(named or words)}: {why}")
    return done.stdout


def ip(*words: str) -> str:
    """What `ip` prints; raises RunError with its complaint."""
    return output(["ip", *words])
