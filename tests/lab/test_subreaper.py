# SPDX-License-Identifier: Apache-2.0
"""The guard, when the supervisor has been killed."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.rights import may_make_namespaces
from tests.waiting import SECONDS

from tare.lab.processes import subreaper, supervisor

KILLED = f"""
import os, runpy, signal, subprocess, time
shared = runpy.run_path({supervisor.__file__!r})
descendants, send = shared["descendants"], shared["send"]
set_subreaper = shared["set_subreaper"]
LIMIT_S, POLL_S = 1e9, 0.02
if __name__ == "__main__":
    outer = subprocess.Popen(["unshare", "--pid", "--fork", "sleep", "600"])
    while not (inner := [pid for pid in descendants(outer.pid) if pid != outer.pid]):
        time.sleep(POLL_S)
    inside = ["nsenter", f"--pid=/proc/{{inner[0]}}/ns/pid", "sh", "-c", "echo; exec sleep 600"]
    subprocess.Popen(inside, stdout=subprocess.PIPE).stdout.readline()
    os.kill(os.getpid(), signal.SIGKILL)
"""
"""A supervisor that is killed when a process has come into a PID namespace that it has made."""


def test_guard_ends_with_all_processes_of_a_container(tmp_path: Path) -> None:
    if not may_make_namespaces():
        pytest.skip("a PID namespace needs root")
    script = tmp_path / "supervisor.py"
    script.write_text(KILLED)
    with subprocess.Popen([sys.executable, "-I", "-S", subreaper.__file__, str(script)]) as guard:
        try:
            # Its own limit is far away: it waits until nothing is left.
            assert guard.wait(SECONDS) == -9
        finally:
            guard.kill()
