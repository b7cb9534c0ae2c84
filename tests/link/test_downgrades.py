# SPDX-License-Identifier: Apache-2.0
"""A link goes back to TCP with bytes in its ring that nobody has read."""

import os
from pathlib import Path

import pytest
from tests.link import linked
from tests.once import OUT, compiled

HERE = Path(__file__).parent
PYTHON = "/usr/bin/python3"
# TCP's buffers are made to take less than 200 KB; a ring has at most 4 MiB.
MANY = 3_000_000
MORE_THAN_A_RING = 10_000_000
ROUNDS = 150
TIMES = 10


@pytest.fixture(scope="module")
def downgrades() -> str:
    source = HERE / "downgrades.c"
    return str(compiled("downgrades", "cc", "-O1", "-w", "-o", OUT, source))


@pytest.mark.parametrize("way", ["exec", "pass"])
@pytest.mark.parametrize(
    "end", ["rests", "closes", "closes_at_limit", "execs", "exits", "_exits", "quick_exits"]
)
@pytest.mark.parametrize("most", [MANY, MORE_THAN_A_RING])
def test_unread_bytes_go_to_tcp_though_the_sender_makes_no_call_or_has_ended(
    downgrades: str, way: str, end: str, most: int
) -> None:
    run = linked.run(downgrades, way, end, str(most), "1")
    assert (run.code, run.errors) == (0, "")
    sent = int(run.output.split()[-1])
    assert sent >= 1 << 20
    counts = run.counts
    assert (counts["links"], counts["left"], counts["reset"], counts["unserved"]) == (2, 1, 0, 0)
    assert counts["tcp_bytes_sent"] >= sent


@pytest.mark.parametrize("way", ["exec", "pass"])
def test_no_downgrade_of_many_is_reset(downgrades: str, way: str) -> None:
    run = linked.run(downgrades, way, "rests", "60000", str(ROUNDS))
    assert (run.code, run.errors) == (0, "")
    assert run.counts["reset"] == 0
    # A connection whose ends do not meet in time stays TCP.
    assert ROUNDS / 2 < run.counts["left"] <= ROUNDS
    assert run.counts["tcp_bytes_sent"] >= int(run.output.split()[-1])


def test_signal_handler_may_send_on_the_connection_that_its_thread_takes_back_to_tcp() -> None:
    options = ("-O1", "-w", "-pthread", "-o", OUT)
    handlers = str(compiled("signal_handlers", "cc", *options, HERE / "signal_handlers.c", "-lrt"))
    for _ in range(TIMES):
        run = linked.run(handlers, str(MANY))
        assert (run.code, run.errors, run.output) == (0, "", "0 0\n")
        assert run.counts["downgrades"] > 0
        assert run.counts["reset"] == 0


def test_bytes_of_a_sender_that_was_killed_are_lost_with_a_reset(downgrades: str) -> None:
    run = linked.run(downgrades, "pass", "kills", "3000", "1")
    assert run.errors == "read: Connection reset by peer"
    assert run.counts["reset"] == 1


LINKED = (
    linked.PAIR
    + """
import ctypes, os, resource, socket, struct
def threads():
    tasks = os.listdir("/proc/self/task")
    return [open(f"/proc/self/task/{task}/comm").read() for task in tasks]
def passed(far):
    pair = socket.socketpair()
    socket.send_fds(pair[0], [b"b"], [far.fileno()])
    _, (fd,), _, _ = socket.recv_fds(pair[1], 1, 1)
    return socket.socket(fileno=fd)
own = ["python3\\n"]
"""
)


def test_service_thread_sleeps_and_blocks_all_signals() -> None:
    script = f"""{LINKED}
assert threads() == own
pairs = [linked() for _ in range(20)]
task, = set(os.listdir("/proc/self/task")) - {{str(os.getpid())}}
def status():
    lines = open(f"/proc/self/task/{{task}}/status").read().splitlines()
    return dict(line.split(":\\t", 1) for line in lines if ":\\t" in line)
from time import sleep
while status()["State"][0] != "S":
    sleep(0.001)
before = status()
assert before["Name"] == "tare-link"
assert int(before["SigBlk"], 16) == 2**64 - 1 - (1 << 8) - (1 << 18)
for _ in range(100):
    pairs[0][0].sendall(b"x"), pairs[0][1].recv(1)
sleep(0.5)
switches = "voluntary_ctxt_switches"
assert status()[switches] == before[switches], "it did not sleep"
"""
    run = linked.run(PYTHON, "-c", script)
    assert (run.code, run.errors) == (0, "")
    linked.assert_carried(run.counts, 40)


def test_child_of_a_fork_has_a_service_thread_once_it_uses_a_link() -> None:
    script = f"""{LINKED}
near, far = linked()
child = os.fork()
if child == 0:
    assert threads() == own
    near.sendall(b"of the child")
    assert len(threads()) == 2
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert passed(far).recv(100) == b"of the child"
"""
    run = linked.run(PYTHON, "-W", "ignore", "-c", script)
    assert (run.code, run.errors) == (0, "")
    assert run.counts["reset"] == 0


def test_child_that_exits_leaves_the_ring_to_its_parent() -> None:
    """TCP has no room for the bytes of the ring, and the other end leaves later."""
    script = f"""{LINKED}
import select
near, far = linked()
near.setblocking(False)
sent = near.send(bytes(1 << 20)) + near.send(bytes(1 << 20))
near.setblocking(True)
sent -= len(far.recv(2000))
near.sendall(b"parent")
if os.fork() == 0:
    near.sendall(b"child")
    os._exit(0)
os.wait()
sets = [select.epoll() for _ in range(3)]
for own in sets:
    own.register(far)
assert far.recv(sent, socket.MSG_WAITALL) == bytes(sent)
assert far.recv(11, socket.MSG_WAITALL) == b"parentchild"
"""
    run = linked.run(PYTHON, "-W", "ignore", "-c", script)
    assert (run.code, run.errors) == (0, "")
    assert run.counts["left"] == 1
    assert run.counts["reset"] == 0


def test_bytes_of_a_child_behind_unread_ones_are_an_edge() -> None:
    script = f"""{LINKED}
import select
near, far = linked()
own = select.epoll()
own.register(far, select.EPOLLIN | select.EPOLLET)
near.sendall(b"parent")
assert own.poll(0) == [(far.fileno(), select.EPOLLIN)]
assert far.recv(1) == b"p"
has_sent, may_exit = os.pipe(), os.pipe()
if os.fork() == 0:
    near.sendall(b"child")
    os.write(has_sent[1], b"x")
    os.read(may_exit[0], 1)
    os._exit(0)
os.read(has_sent[0], 1)
assert own.poll(0) == [(far.fileno(), select.EPOLLIN)]
os.write(may_exit[1], b"x")
os.wait()
assert far.recv(100) == b"arentchild"
"""
    run = linked.run(PYTHON, "-W", "ignore", "-c", script)
    assert (run.code, run.errors) == (0, "")
    assert run.counts["reset"] == 0


def test_program_changes_its_rights_in_all_of_its_threads() -> None:
    script = f"""{LINKED}
near, far = linked()
libc = ctypes.CDLL(None, use_errno=True)
before = set(os.listdir("/proc/self/task"))
assert len(before) == 2
if os.getuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    for task in os.listdir("/proc/self/task"):
        lines = open(f"/proc/self/task/{{task}}/status").read().splitlines()
        assert "Uid:\\t65534\\t65534\\t65534\\t65534" in lines, lines
# The kernel refuses a new user namespace to a program with several threads.
CLONE_NEWUSER = 0x10000000
assert libc.unshare(CLONE_NEWUSER) == 0 or ctypes.get_errno() != 22
assert libc.prctl(38, 1, 0, 0, 0) == 0
after = set(os.listdir("/proc/self/task"))
assert len(after) == 2 and after != before
near.sendall(b"unread")
assert passed(far).recv(100) == b"unread"
"""
    run = linked.run(PYTHON, "-c", script)
    assert (run.code, run.errors) == (0, "")
    assert (run.counts["reset"], run.counts["unserved"]) == (0, 0)


def test_program_that_may_not_start_threads_is_linked_without_one() -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give up being root")
    script = f"""{LINKED}
os.setresuid(12345, 12345, 12345)
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
near, far = linked()
assert threads() == own
near.sendall(b"still a link")
assert far.recv(100) == b"still a link"
"""
    run = linked.run(PYTHON, "-c", script)
    assert (run.code, run.errors) == (0, "")
    linked.assert_carried(run.counts, 2)
    assert run.counts["unserved"] > 0


def test_service_thread_ends_before_the_program_forbids_itself_system_calls() -> None:
    script = f"""{LINKED}
near, far = linked()
libc = ctypes.CDLL(None)
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NO_NEW_PRIVS = 22, 2, 38
assert len(threads()) == 2
assert libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) == 0
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]
allow = struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)  # BPF_RET | BPF_K, SECCOMP_RET_ALLOW
filter = Filter(1, allow)
assert libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filter), 0, 0) == 0
assert threads() == own
near.sendall(b"by TCP")
assert far.recv(100) == b"by TCP"
"""
    run = linked.run(PYTHON, "-c", script)
    assert (run.code, run.errors) == (0, "")
    assert run.counts["reset"] == 0
