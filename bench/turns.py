# SPDX-License-Identifier: Apache-2.0
"""Programs that wait for their turn: what is compared alternates every few milliseconds."""

import os
import random
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack


def on_cpu(cpu: int, command: Sequence[str]) -> list[str]:
    """The command, on one CPU."""
    return ["taskset", "--cpu-list", str(cpu), *command]


class Turner:
    """A program that does N pieces of work for a line "N", and prints the nanoseconds."""

    pieces = 0
    """All that it has done."""

    def __init__(
        self,
        command: Sequence[str],
        variables: Mapping[str, str],
        cpu: int | None,
        stack: ExitStack,
    ) -> None:
        self.process = stack.enter_context(
            subprocess.Popen(
                command if cpu is None else on_cpu(cpu, command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | variables,
            )
        )
        stack.callback(self.end)

    def end(self) -> None:
        """Ends the program by the end of its input."""
        assert self.process.stdin
        self.process.stdin.close()

    def turn(self, pieces: int) -> float:
        """Nanoseconds a piece of work, over so many."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{pieces}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args!r} ended with {self.process.wait()}")
        self.pieces += pieces
        return int(line) / pieces


def alternate(
    subjects: Mapping[str, tuple[Turner, int]], turns: int, seed: int
) -> dict[str, list[float]]:
    """Nanoseconds a piece of each subject, one value a turn; its number is pieces a turn."""
    order = random.Random(seed)
    values: dict[str, list[float]] = {name: [] for name in subjects}
    for turner, pieces in subjects.values():
        turner.turn(pieces)
    for _ in range(turns):
        for name in order.sample([*subjects], len(subjects)):
            turner, pieces = subjects[name]
            values[name].append(turner.turn(pieces))
    return values
