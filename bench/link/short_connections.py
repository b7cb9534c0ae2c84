# SPDX-License-Identifier: Apache-2.0
"""Connections to a program that is not linked: opened, used and closed by one that is, and by one
that is not, in turns on one CPU."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import numpy.typing as npt
from bench.cases import Case
from bench.link.services import LINK, LINKED, TCP
from bench.turns import Turner, alternate, on_cpu

SOURCE = Path(__file__).with_suffix(".c")
CPU = 1
PER_TURN = 50
PER_PERCENTILE = 1000
EXCHANGES = (0, 1, 3)
"""Of a byte on each connection; from the second on, the library looks for the other end."""


def measured(folder: Path, connections: int) -> Iterator[Case]:
    """Median and 99th percentile of so many connections of each."""
    program = folder / "short_connections"
    subprocess.run(["cc", "-O2", SOURCE, "-o", program], check=True)
    with ExitStack() as stack:
        server = stack.enter_context(
            subprocess.Popen(
                on_cpu(CPU, [str(program), "serve"]),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        assert server.stdin
        assert server.stdout
        stack.callback(server.stdin.close)
        port = server.stdout.readline().strip()
        for exchanges in EXCHANGES:
            yield from compared(program, port, exchanges, folder, connections)


def compared(
    program: Path, port: str, exchanges: int, folder: Path, connections: int
) -> Iterator[Case]:
    """With this number of exchanges on each connection."""
    files = {LINKED: folder / "linked.times", TCP: folder / "tcp.times"}
    with ExitStack() as stack:
        subjects = {}
        for name, file in files.items():
            command = [str(program), "open", port, str(exchanges), str(file)]
            wrap = LINK if name == LINKED else []
            subjects[name] = (Turner([*wrap, *command], {}, CPU, stack), PER_TURN)
        alternate(subjects, connections // PER_TURN, seed=exchanges)
    took = {name: np.fromfile(file, np.uint32) / 1000 for name, file in files.items()}
    for short, quantile in (("median", 0.5), ("p99", 0.99)):
        values = {name: quantile_per_thousand(times, quantile) for name, times in took.items()}
        case = f"connect-{exchanges}-exchanges-{short}"
        yield Case(case, LINKED, TCP, "µs", values[LINKED], values[TCP])


def quantile_per_thousand(times: npt.NDArray[np.float64], quantile: float) -> list[float]:
    """A quantile of each thousand connections."""
    parts = times[: len(times) // PER_PERCENTILE * PER_PERCENTILE].reshape(-1, PER_PERCENTILE)
    return [float(value) for value in np.quantile(parts, quantile, axis=1)]
