# SPDX-License-Identifier: Apache-2.0
"""Starts the supervisor and outlives it: kills what it leaves when it and tare die at one instant.

It is the parent and a subreaper, so what the supervisor had started comes to it. It shows other
words than tare's in /proc, since who kills both at once kills by them: `pkill -9 -f tare`. It runs
as a script, with the standard library alone: `subreaper.py SUPERVISOR`.
"""

import ctypes
import os
import runpy
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

WORDS = b"guard of an experiment"
ARGUMENTS = slice(45, 47)
"""Where /proc/PID/stat has the addresses of the words, counted from the state of the process."""


def main(supervisor: str) -> None:
    """Ends as the supervisor did, when all that it started has ended too."""
    shared = runpy.run_path(supervisor)
    shared["set_subreaper"](True)
    show_other_words()
    child = subprocess.Popen([sys.executable, "-I", "-S", supervisor])
    for inherited in (0, 1):  # tare knows by the ends of these pipes that the supervisor died
        os.close(inherited)
    code = child.wait()
    until = time.monotonic() + shared["LIMIT_S"]
    while (left := shared["descendants"](os.getpid())) and time.monotonic() < until:
        shared["send"](signal.SIGKILL, left)
        reap()
        time.sleep(shared["POLL_S"])
    if code < 0:
        os.kill(os.getpid(), -code)
    sys.exit(code)


def reap() -> None:
    """The first process of a container does not end before those that have come into it are reaped,
    whose parent is outside."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def show_other_words() -> None:
    """Writes over the command line that /proc shows of this process."""
    fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    begin, end = map(int, fields[ARGUMENTS])
    if end - begin > len(WORDS):
        ctypes.memset(begin, 0, end - begin)
        ctypes.memmove(begin, WORDS, len(WORDS))


if __name__ == "__main__":
    main(sys.argv[1])
