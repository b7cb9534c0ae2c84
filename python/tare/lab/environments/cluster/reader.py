# SPDX-License-Identifier: Apache-2.0
"""Reads the counters of a container with one shell that stays: each `kubectl exec` costs the
container milliseconds of CPU time, which would count as the service's."""

import os
import select
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from tare.lab.environments.cluster.kubectl import complaint
from tare.lab.environments.launch import RunError
from tare.lab.machine.saturation import Saturation
from tare.lab.processes.processes import variables_of

LIMIT_S = 60
_END = b".\n"


class Reader:
    """Runs a script in a container again and again."""

    def __init__(self, words: Sequence[str], script: str) -> None:
        """`words` run a command in the container with the standard input of this host."""
        loop = f"while read -r line; do\n{script}\necho .\ndone"
        self._words = [*words, "sh", "-c", loop]
        self._shell: subprocess.Popen[bytes] | None = None

    def read(self) -> str:
        """What the script prints now. Raises RunError with the complaint of kubectl."""
        if self._shell is not None:
            # The end of a program is the end of all shells in its container.
            with suppress(BrokenPipeError, EOFError):
                return self._ask(self._shell)
            self.close()
        try:
            self._shell = subprocess.Popen(
                self._words,
                env=variables_of({}),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
            )
            return self._ask(self._shell)
        except (BrokenPipeError, EOFError) as error:
            why = self.close() or "it has ended"
            raise RunError(f"control groups of a pod: {why}") from error
        except OSError as error:
            raise RunError(f"{self._words[0]}: {error.strerror}") from error

    def close(self) -> str:
        """Ends the shell, and returns its complaint."""
        shell, self._shell = self._shell, None
        if shell is None:
            return ""
        shell.kill()
        return complaint(shell.communicate()[1].decode(errors="replace"))

    def _ask(self, shell: "subprocess.Popen[bytes]") -> str:
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write(b"\n")
        found = b""
        while not (found.endswith(b"\n" + _END) or found == _END):
            if not select.select([shell.stdout], [], [], LIMIT_S)[0]:
                raise RunError(f"control groups of a pod: no answer within {LIMIT_S} s")
            part = os.read(shell.stdout.fileno(), 65536)
            if not part:
                raise EOFError
            found += part
        return found.decode(errors="replace")


class ContainerWatch:
    """What the kernel of another machine held containers back by, from now on."""

    def __init__(self, read: Callable[[], Mapping[str, int]]) -> None:
        self._read = read
        self._before = self._now()

    def look(self, _pids: Sequence[int]) -> None:
        """No process of theirs is on this host."""

    def saturation(self) -> Saturation:
        """What happened to them up to now."""
        return self._now() - self._before

    def _now(self) -> Saturation:
        found = {name: value for name, value in self._read().items() if name != "cpu_time"}
        return Saturation(time.time_ns(), 0, found)
