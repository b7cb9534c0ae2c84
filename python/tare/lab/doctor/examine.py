# SPDX-License-Identifier: Apache-2.0
"""Asks every probe at once, each in a process of its own that cannot outstay its limit."""

import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from tare.lab.doctor.finding import Finding, Found, Probe, finding
from tare.lab.doctor.syscalls import die_with_parent

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class _Look:
    probe: Probe
    pid: int
    answer: int
    deadline: float


def examine(probes: Iterable[Probe]) -> Iterator[Finding]:
    """The findings, in the order of the probes."""
    looks: list[_Look] = []
    # Until the folder is sure to be removed: even finding its parent makes a file for a moment.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        scratch = Path(tempfile.mkdtemp(prefix="tare-doctor-"))
    except BaseException:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        # A probe may give up root's rights and must still be able to use its folder's parent.
        scratch.chmod(0o711)
        looks.extend(_start(probe, scratch / str(number)) for number, probe in enumerate(probes))
        for look in looks:
            yield finding(look.probe, _answer(look))
    finally:
        for look in looks:
            _end(look)
        shutil.rmtree(scratch, ignore_errors=True)


def _start(probe: Probe, folder: Path) -> _Look:
    folder.mkdir()
    answer, ours = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _look(probe, folder, ours, parent)
    os.close(ours)
    with suppress(ProcessLookupError, PermissionError):
        os.setpgid(pid, pid)
    return _Look(probe, pid, answer, time.monotonic() + probe.limit_s)


def _look(probe: Probe, folder: Path, answer: int, parent: int) -> None:
    """The child: a group of its own, silent, gone with its parent."""
    try:
        with suppress(PermissionError):
            os.setpgid(0, 0)
        die_with_parent(parent)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os.chdir(folder)
        try:
            found = probe.look()
        except Exception as error:
            # Whatever an odd machine makes of a probe is an answer, not a crash of the others.
            found = Found("no", f"the probe failed with {type(error).__name__}: {error}")
        os.write(answer, json.dumps(asdict(found)).encode())
    finally:
        os._exit(0)


def _answer(look: _Look) -> Found:
    """Reads until the probe closes its end or its time is over."""
    received = b""
    while (left := look.deadline - time.monotonic()) > 0:
        if not select.select([look.answer], [], [], left)[0]:
            break
        chunk = os.read(look.answer, 65536)
        if not chunk:
            return Found(**json.loads(received)) if received else Found("no", "the probe crashed")
        received += chunk
    return Found("no", f"no answer within {look.probe.limit_s:g} s")


def _end(look: _Look) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(look.pid, signal.SIGKILL)
    os.waitpid(look.pid, 0)
    os.close(look.answer)
