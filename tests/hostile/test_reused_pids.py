# SPDX-License-Identifier: Apache-2.0
"""A process that gets the PID of one that exited is not taken for it."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.hostile.conftest import NOBODY, attack, logged_to, says
from tests.waiting import SECONDS

LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
TRIES = 50
"""Another process of the machine may get the PID."""

# For each PID that it reads, starts a process that should get it, and prints the PID it has.
HEIR = f"""
import os, signal, sys
print(os.environ["TARE_LOG"], flush=True)
for pid in map(int, sys.stdin):
    open("{LAST_PID}", "w").write(str(pid - 1))
    child = os.fork()
    if not child:
        signal.pause()
    print(child, flush=True)
    if child == pid:
        sys.stdin.read()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


@pytest.mark.usefixtures("open_to_all")
def test_an_heir_of_a_pid_is_no_descendant_that_connected(tmp_path: Path) -> None:
    """The collector is busy while the process that connected exits, and a child of the program
    that it runs gets its PID."""
    if not LAST_PID.exists():
        pytest.skip("this kernel does not let a test choose a PID")
    pipe = subprocess.PIPE
    command = [*logged_to(tmp_path), sys.executable, "-c", HEIR]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as collector:
        assert collector.stdin is not None
        path = says(collector)
        for _ in range(TRIES):
            collector.send_signal(signal.SIGSTOP)
            with attack("gone", path) as gone:
                assert gone.stdin is not None
                pid = says(gone)
                print(pid, file=collector.stdin, flush=True)
                is_reused = says(collector) == pid
                collector.send_signal(signal.SIGCONT)
                print(file=gone.stdin, flush=True)
                assert says(gone) == "answered"
            if is_reused:
                break
        else:
            pytest.fail(f"no process got one of {TRIES} PIDs")
        _, told = collector.communicate(timeout=SECONDS)
    assert f"process {pid} of user {NOBODY} is refused: expected user 0, or a desc" in told
