# SPDX-License-Identifier: Apache-2.0
"""What else shows who talks to whom, from packages: its CPU time beside the same load."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.link.services import cpu_seconds
from bench.map.load import CellError
from bench.map.network import Network

PEERS = ("ss", "conntrack", "bpftrace")
TRACKED = ["INPUT", "-m", "conntrack", "--ctstate", "NEW", "-j", "ACCEPT"]
"""The kernel tracks connections of a namespace only if a rule asks for them."""
STATES = (
    "tracepoint:sock:inet_sock_set_state"
    " { @[ntop(args->family, args->saddr), ntop(args->family, args->daddr),"
    " args->sport, args->dport, args->newstate] = count(); }"
    " interval:s:1 { print(@); clear(@); }"
)


@contextmanager
def watching(
    name: str, network: Network, folder: Path, seconds: float
) -> Iterator[Callable[[], float]]:
    """While it runs; the function measures its CPU time per second, over `seconds`.

    Raises CellError if the program is not installed or ends early.
    """
    if shutil.which(name) is None:
        raise CellError(f"{name} is not installed")
    ends = (network.server, network.client)
    with ExitStack() as stack, (folder / name).open("wb") as output:
        if name == "ss":
            listing = [end.command(["ss", "-H", "-t", "-u", "-n", "-i"]) for end in ends]
            yield lambda: listed(listing, seconds)
            return
        if name == "conntrack":
            for end in ends:
                end.output("iptables", "-A", *TRACKED)
                stack.callback(end.output, "iptables", "-D", *TRACKED)
            commands = [end.command(["conntrack", "-E"]) for end in ends]
        else:
            commands = [["bpftrace", "-e", STATES]]
        processes = [
            stack.enter_context(subprocess.Popen(command, stdout=output, stderr=output))
            for command in commands
        ]
        for process in processes:
            stack.callback(process.kill)
        yield lambda: used(processes, seconds)


def listed(listing: Sequence[Sequence[str]], seconds: float) -> float:
    """Of programs that run once a second."""
    begin, spent = time.monotonic(), 0.0
    for number in range(1, max(1, round(seconds)) + 1):
        for command in listing:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise CellError(f"{command!r}: exit code {process.returncode}")
            spent += usage.ru_utime + usage.ru_stime
        time.sleep(max(0, begin + number - time.monotonic()))
    return spent / (time.monotonic() - begin)


def used(processes: Sequence[subprocess.Popen[bytes]], seconds: float) -> float:
    """Of programs that run all the time."""
    begin, before = time.monotonic(), sum(cpu_seconds(process.pid) for process in processes)
    time.sleep(seconds)
    for process in processes:
        if process.poll() is not None:
            raise CellError(f"{process.args!r}: exit code {process.returncode}")
    spent = sum(cpu_seconds(process.pid) for process in processes) - before
    return spent / (time.monotonic() - begin)
