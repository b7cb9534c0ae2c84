# SPDX-License-Identifier: Apache-2.0
"""A thread's number says nothing in another PID namespace: no ring of events has two writers."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.hook.hooked import hooked, rules

UNSHARE = ["unshare", "--user", "--map-root-user", "--pid", "--fork"]

# Prints who owns rings after this process has recorded an event, and after a child in yet
# another namespace has done so, which has the same number there: 1.
SCRIPT = """
import ctypes, os, socket, sys, time
CLONE_NEWPID = 0x20000000
shared = int(os.environ["TARE_HOOK"].split(":")[3])

def owners():
    # Long enough for the rings of the dead to be freed.
    time.sleep(0.1)
    numbers = memoryview(os.pread(shared, 1024, 80)).cast("I")
    print(*(hex(number) for number in numbers if number), flush=True)

def record():
    a, b = socket.socketpair()
    a.sendall(b"needle")
    b.recv(6)

assert os.getpid() == 1
record()
owners()
assert ctypes.CDLL(None).unshare(CLONE_NEWPID) == 0
if os.fork() == 0:
    assert os.getpid() == 1
    record()
    owners()
    os._exit(0)
os.wait()
"""


def test_threads_of_other_namespaces_keep_rings_of_their_own(tmp_path: Path) -> None:
    if subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces: unshare --user --pid fails")
    command = [*UNSHARE, sys.executable, "-S", "-c", SCRIPT]
    seen = hooked(command, tmp_path, rules("needle", scope="all"))
    assert seen.behaviour.code == 0, seen.behaviour.err
    assert seen.behaviour.out.splitlines() == ["0x80000001", "0x80000001 0x80000001"]
    assert [event["keyword"] for event in seen.events] == ["needle", "needle"]
