# SPDX-License-Identifier: Apache-2.0
"""Memory that a link takes from a program that locks all of its own, or limits it."""

import json
import os
import subprocess

import pytest
from tests.link import linked
from tests.waiting import SECONDS

PYTHON = "/usr/bin/python3"
PAIRS = (
    linked.PAIR
    + """
import ctypes, os, resource, socket, threading
libc = ctypes.CDLL(None, use_errno=True)
def status(name):
    for line in open("/proc/self/status"):
        if line.startswith(name + ":"):
            return int(line.split()[1])
def stream(near, far, length):
    sent = os.urandom(length)
    thread = threading.Thread(target=near.sendall, args=(sent,))
    thread.start()
    got = b""
    while len(got) < length:
        got += far.recv(1 << 20)
    thread.join()
    assert got == sent
def carried(near, far, length):
    # Twenty times the bytes that a stream may have sent through TCP, since its ring was full.
    for _ in range(length * 10 // 40_000):
        exchange(near, far, 40_000)
"""
)


def test_program_that_locks_its_memory_gives_a_link_little_of_it() -> None:
    if os.getuid() != 0:
        pytest.skip("RLIMIT_MEMLOCK does not let other users lock all memory")
    script = f"""{PAIRS}
MCL_CURRENT = 1
pairs = [linked() for _ in range(30)]
before = status("RssShmem")
assert libc.mlockall(MCL_CURRENT) == 0
# Both ends of each link are here, and share their pages: 4 KiB and two rings of 64 KiB.
per_link = (status("RssShmem") - before) / 60
assert per_link <= 140, per_link
stream(*pairs[0], 5_000_000)
carried(*pairs[0], 5_000_000)
assert libc.munlockall() == 0
"""
    run = linked.run(PYTHON, "-c", script)
    assert (run.code, run.errors) == (0, "")
    linked.assert_carried(run.counts, 60)
    assert run.counts["reset"] == 0


def test_rings_of_a_program_that_limits_its_address_space_do_not_grow() -> None:
    script = f"""{PAIRS}
space = status("VmSize") * 1024 + (1 << 28)
resource.setrlimit(resource.RLIMIT_AS, (space, resource.RLIM_INFINITY))
near, far = linked()
stream(near, far, 1_000_000)
carried(near, far, 1_000_000)
def rings():
    lines = [line for line in open("/proc/self/maps") if "memfd:tare-link " in line]
    ends = [line.split()[0].split("-") for line in lines]
    return max(int(end, 16) - int(begin, 16) for begin, end in ends)
assert rings() <= (1 << 16) + 4096, rings()
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
near, far = linked()
for _ in range(100):
    stream(near, far, 4_000_000)
    carried(near, far, 4_000_000)
    if rings() >= 1 << 18:
        break
else:
    raise AssertionError("no ring has grown")
"""
    run = linked.run(PYTHON, "-c", script)
    assert (run.code, run.errors) == (0, "")
    linked.assert_carried(run.counts, 4)
    assert run.counts["reset"] == 0


def test_silent_link_gives_its_memory_back() -> None:
    script = f"""{PAIRS}
import time
empty = status("RssShmem")
near, far = linked()
for _ in range(100):
    stream(near, far, 4_000_000)
    carried(near, far, 4_000_000)
    if status("RssShmem") > empty + 400:
        break
else:
    raise AssertionError("no ring has grown")
def is_small():
    # The counters, as both ends have them mapped; and some of the statistics.
    return status("RssShmem") <= empty + 16
until = time.monotonic() + {SECONDS}
while not is_small():
    assert time.monotonic() < until, status("RssShmem")
    time.sleep(0.1)
while is_small():
    assert time.monotonic() < until + {SECONDS}, status("RssShmem")
    stream(near, far, 1_000_000)
    stream(far, near, 1_000_000)
    carried(near, far, 2_000_000)
"""
    run = linked.run(PYTHON, "-c", script)
    assert (run.code, run.errors) == (0, "")
    assert run.counts["reset"] == 0
    linked.assert_carried(run.counts, 2)


def test_links_count_with_the_pages_that_they_have_touched() -> None:
    # Both ends of each link: 80 rings of 64 KiB, of which a message touches one page.
    script = f"""{PAIRS}
pairs = [linked() for _ in range(40)]
memory = status("RssShmem")
for near, far in pairs:
    exchange(near, far, 1)
# Three pages, which both ends map: the counters, and one of each ring.
assert memory <= 40 * 2 * 12 + 400, memory
"""
    command = [linked.LINK, "--eager", "--memory", "1M", "--json", "--", PYTHON, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    *errors, last = done.stderr.splitlines()
    assert (done.returncode, errors) == (0, [])
    counts = json.loads(last)
    assert (counts["refused"], counts["reset"]) == (0, 0)
    linked.assert_carried(counts, 80)


def test_rings_have_no_more_memory_than_they_may() -> None:
    # Two rings of 64 KiB, the counters of both ends, and no ring that grows.
    script = f"""{PAIRS}
near, far = linked()
stream(near, far, 4_000_000)
stream(far, near, 4_000_000)
carried(near, far, 8_000_000)
listener = socket.create_server(("127.0.0.1", 0))
other = socket.create_connection(listener.getsockname())
accepted, _ = listener.accept()
stream(other, accepted, 4_000_000)
"""
    command = [linked.LINK, "--eager", "--memory", "140K", "--json", "--", PYTHON, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    counts = json.loads(done.stderr.splitlines()[-1])
    assert done.returncode == 0
    assert counts["reset"] == 0
    assert counts["refused"] > 0
    linked.assert_carried(counts, 2)
    # Bytes that were taken back from a ring count twice. The other connection is no link.
    assert counts["ring_bytes_sent"] + counts["tcp_bytes_sent"] < 21 * 8_000_000 + 2_000_000
