# SPDX-License-Identifier: Apache-2.0
"""Descriptors that many links take from a program, and what links leave behind."""

import json
import resource
import subprocess
from pathlib import Path

import pytest
from tests.link import linked
from tests.once import OUT, compiled
from tests.waiting import SECONDS

PYTHON = "/usr/bin/python3"
LINKS, LIMIT, MORE = 10_000, 20_000, 9_000
FEWER = 0.2
"""Links take seconds: all of them are made by `make test-integration`."""
# With the descriptors of the library, which are above the soft limit, and for root above both.
NEEDED = 2 * LIMIT
CHILDREN = 1000

MANY = """
import os, resource, socket, sys
links, limit, hard, more = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
listener = socket.create_server(("127.0.0.1", 0))
end, other_end = os.pipe()
child = os.fork()
if child == 0:
    os.close(other_end)
    accepted = []
    for _ in range(links):
        far, _ = listener.accept()
        for _ in range(4):
            assert far.recv(8) == b"question"
            far.sendall(b"answer")
        far.sendall(far.recv(1024, socket.MSG_WAITALL))
        accepted.append(far)
    os.read(end, 1)
    os._exit(0)
connections = []
for _ in range(links):
    near = socket.create_connection(listener.getsockname())
    for _ in range(4):
        near.sendall(b"question")
        assert near.recv(6) == b"answer"
    near.sendall(bytes(1024))
    assert near.recv(1024, socket.MSG_WAITALL) == bytes(1024)
    connections.append(near)
files = [os.open("/dev/null", os.O_RDONLY) for _ in range(more)]
assert max(files) < limit == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
for near in connections:
    near.sendall(b"x")
os.close(other_end)
assert os.waitpid(child, 0)[1] == 0
"""


def may_raise_limits() -> bool:
    """Whether this user's programs can raise their hard limits, as root's can."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard + 1))
    except (OSError, ValueError):
        return False
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return True


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", [FEWER, pytest.param(1, marks=pytest.mark.integration)])
def test_program_with_many_links_can_open_what_its_limit_allows(part: float) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    is_limited = not may_raise_limits()
    if is_limited:
        part = min(part, hard / NEEDED)
    links, limit, more = (int(number * part) for number in (LINKS, LIMIT, MORE))
    if links < 500:
        pytest.skip(f"the hard limit of descriptors is {hard}")
    numbers = (links, limit, hard if is_limited else limit, more)
    command = [linked.LINK, "--eager", "--json", "--", PYTHON, "-c", MANY, *map(str, numbers)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    *errors, last = done.stderr.splitlines()
    assert (done.returncode, errors) == (0, [])
    counts = json.loads(last)
    assert (counts["refused"], counts["reset"]) == (0, 0)
    linked.assert_carried(counts, 2 * links)


def test_links_that_end_leave_nothing_behind() -> None:
    script = f"""{linked.PAIR}
import os
def left():
    descriptors = sorted(map(int, os.listdir("/proc/self/fd")))
    maps = [line for line in open("/proc/self/maps") if "memfd:tare-link " in line]
    return descriptors, len(maps), sorted(name for name in os.listdir("/dev/shm") if "tare" in name)
def memory():
    lines = [line.split() for line in open("/proc/self/status") if line.startswith("Vm")]
    kilobytes = dict((line[0], int(line[1])) for line in lines)
    return kilobytes["VmSize:"], kilobytes["VmRSS:"]
def rounds(count):
    for _ in range(count):
        pairs = [linked() for _ in range(40)]
        for near, far in pairs:
            near.close()
            far.close()
rounds(1)
before, had = left(), memory()
rounds(100)
assert left() == before, (before, left())
# Less than a fourth of a page per link, since Python may have taken some.
more = [now - before for now, before in zip(memory(), had)]
assert max(more) < 100 * 80, more
"""
    run = linked.run(PYTHON, "-c", script)
    assert (run.code, run.errors) == (0, "")
    assert run.counts["refused"] == 0
    linked.assert_carried(run.counts, 2 * 40 * 101)


@pytest.mark.exhaustive
@pytest.mark.parametrize("way", ["fork", "vfork", "posix_spawn", "system", "popen"])
def test_no_child_has_a_raised_limit(way: str) -> None:
    source = Path(__file__).parent / "descriptor_limit.c"
    program = str(compiled("descriptor_limit", "cc", "-O1", "-w", "-pthread", "-o", OUT, source))
    run = linked.run(program, way, str(CHILDREN))
    assert (run.code, run.errors) == (0, "")
    # Each new program takes links back to TCP.
    assert run.counts["links"] > 0


def test_set_with_a_copy_that_the_library_does_not_know_waits_for_tcp() -> None:
    number = 1 << 17
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] <= number:
        pytest.skip("the hard limit of descriptors is not above 131,072")
    script = f"""{linked.PAIR}
import fcntl, resource, select
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
near, far = linked()
epoll = select.epoll()
epoll.register(far, select.EPOLLIN | select.EPOLLOUT)
copy = select.epoll.fromfd(fcntl.fcntl(epoll.fileno(), fcntl.F_DUPFD, {number}))
for _ in range(8):
    near.sendall(b"question")
    select.select([far], [], [])
    assert copy.poll() == [(far.fileno(), select.EPOLLIN | select.EPOLLOUT)]
    assert far.recv(8) == b"question"
"""
    run = linked.run(PYTHON, "-c", script)
    assert (run.code, run.errors) == (0, "")
    assert (run.counts["links"], run.counts["left"], run.counts["reset"]) == (2, 1, 0)


@pytest.mark.parametrize("limit", [60, 80, 100])
def test_threads_keep_their_descriptors_where_links_find_none(limit: int) -> None:
    """The hard limit is low, too: without root's right there are no numbers above it for links."""
    source = Path(__file__).parents[1] / "hostile" / "programs" / "crowded.c"
    program = compiled("crowded", "cc", "-O2", "-pthread", source, "-o", OUT)
    under_limit = ["sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh"]
    if may_raise_limits():
        under_limit += ["setpriv", "--bounding-set=-sys_resource"]
    command = [*under_limit, linked.LINK, "--eager", "--json", "--", str(program), "24", "60"]
    for _ in range(4):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
        assert (done.returncode, done.stdout) == (0, "")
        counts = json.loads(done.stderr.splitlines()[-1])
        assert counts["links"] > 0
        assert counts["refused"] > 0
