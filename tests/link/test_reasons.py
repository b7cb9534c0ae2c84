# SPDX-License-Identifier: Apache-2.0
"""Why connections stay TCP or go back to it, as `tare link` counts it."""

import re
from pathlib import Path

import pytest
from tests.link import linked
from tests.link.programs import PYTHON, free_port, serving

BEGIN = f"""
import ctypes, fcntl, os, resource, select, signal, subprocess, sys, threading
{linked.PAIR}
libc = ctypes.CDLL(None, use_errno=True)
def pair():
    near = socket.create_connection(listener.getsockname())
    return near, listener.accept()[0]
def talk(near, far):
    for _ in range(4):
        near.sendall(b"question")
        assert far.recv(8) == b"question"
        far.sendall(b"answer")
        assert near.recv(6) == b"answer"
def refused(call, *arguments):
    try:
        call(*arguments)
    except OSError:
        pass
"""
ENDS = "near, far = linked()\n"
LEFT = {
    "exec": ("near.set_inheritable(True); os.execv(sys.executable, ['python', '-c', ''])", 1),
    "spawn": ("os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)", 2),
    "passed": (
        "own, other = socket.socketpair(); socket.send_fds(own, [b'x'], [near.fileno()])",
        1,
    ),
    "stdio": ("os.dup2(near.fileno(), 0)", 1),
    "kernel": ("far.sendall(b'x'); refused(os.sendfile, os.pipe()[1], near.fileno(), None, 1)", 1),
    "kernel_tls": ("refused(near.setsockopt, socket.IPPROTO_TCP, 31, b'tls')", 1),
    "socket_option": ("near.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)", 1),
    "signals": ("fcntl.fcntl(near, fcntl.F_SETFL, os.O_ASYNC)", 1),
    "shut_reading": ("near.shutdown(socket.SHUT_RD)", 1),
    "peek_all": (
        """
far.sendall(b"ab")
threading.Timer(0.05, far.sendall, [b"cde"]).start()
assert near.recv(5, socket.MSG_PEEK | socket.MSG_WAITALL) == b"abcde"
""",
        1,
    ),
    "long_poll": (
        """
poll = select.poll()
for fd in [near.fileno(), *(os.dup(1) for _ in range(256))]:
    poll.register(fd, select.POLLIN)
poll.poll(0)
""",
        1,
    ),
    "epoll_flags": ("select.epoll().register(near, select.EPOLLIN | select.EPOLLEXCLUSIVE)", 1),
    "epoll_set": ("sets = [select.epoll() for _ in range(3)]; [s.register(near) for s in sets]", 1),
    "shared": (
        """
own = select.epoll()
own.register(near)
read, write = os.pipe()
if os.fork() == 0:
    os.read(read, 1)
    os._exit(0)
near.close()
os.write(write, b"x")
os.wait()
""",
        1,
    ),
    "restricted": ("libc.prctl(26, 2, 0, 0, 0); libc.prctl(26, 1, 0, 0, 0)", 2),
    "disconnected": ("assert libc.connect(near.fileno(), bytes(16), 16) == 0", 1),
}
DOWNGRADED = {
    "ring_full": """
near.setblocking(False)
sent = 0
try:
    while True:
        sent += near.send(bytes(64 << 10))
except BlockingIOError:
    pass
while sent:
    sent -= len(far.recv(sent))
""",
    "urgent": "near.send(b'x', socket.MSG_OOB)",
    "call": "os.sendfile(near.fileno(), os.open(sys.executable, os.O_RDONLY), None, 100)",
    "shut_writing": "near.shutdown(socket.SHUT_WR)",
    "closed": "near.close()",
    "other_closed": """
child = subprocess.Popen([sys.executable, "-c", f'''
import os, socket
far = socket.create_connection({listener.getsockname()})
for _ in range(4):
    far.sendall(far.recv(8))
far.recv(1)
os.kill(os.getpid(), 9)
'''])
other, _ = listener.accept()
for _ in range(4):
    other.sendall(b"question")
    assert other.recv(8) == b"question"
other.sendall(b"last")
child.wait()
try:
    while True:
        other.sendall(b"more")
except OSError:
    pass
""",
}
STAYED = {
    "short": (
        """
near, far = pair()
near.sendall(b"request"); far.recv(9); far.sendall(b"reply"); near.recv(9)
""",
        2,
        (),
    ),
    "excluded": ("near, far = pair(); talk(near, far)", 2, ("--except", "127.0.0.1")),
    "memory_limit": ("near, far = pair(); talk(near, far)", 2, ("--memory", "4K")),
    "no_addresses": ("refused(socket.socket().send, b'x')", 1, ("--eager",)),
    "not_met": (
        """
near, far = pair()
resource.setrlimit(resource.RLIMIT_NOFILE, (far.fileno() + 1, 4096))
talk(near, far)
""",
        2,
        (),
    ),
    "no_memory": (
        """
near, far = pair()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 20), -1))
talk(near, far)
""",
        2,
        (),
    ),
    "inherited": (
        """
near, far = pair()
for end in near, far:
    end.set_inheritable(True)
os.execv(sys.executable, ["python", "-c", f'''
import socket
near, far = (socket.socket(fileno=fd) for fd in ({near.fileno()}, {far.fileno()}))
for _ in range(4):
    near.sendall(b"question"); far.recv(8); far.sendall(b"answer"); near.recv(6)
'''])
""",
        2,
        (),
    ),
    "forked": (
        """
near, far = pair()
if os.fork() == 0:
    os._exit(0)
os.wait()
talk(near, far)
""",
        2,
        (),
    ),
    "socket_option": (
        """
listener.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
near = socket.socket()
near.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
near.connect(listener.getsockname())
talk(near, listener.accept()[0])
""",
        2,
        (),
    ),
}


@pytest.mark.parametrize("reason", LEFT)
def test_reason_is_counted_for_which_a_link_is_left(reason: str) -> None:
    action, times = LEFT[reason]
    run = linked.run(PYTHON, "-c", f"{BEGIN}{ENDS}{action}")
    assert (run.code, run.errors) == (0, "")
    assert run.counts["links"] == 2
    assert run.reasons["left"] == {reason: times}


@pytest.mark.parametrize("reason", DOWNGRADED)
def test_reason_is_counted_for_which_bytes_go_back_to_tcp(reason: str) -> None:
    run = linked.run(PYTHON, "-c", f"{BEGIN}{ENDS}{DOWNGRADED[reason]}")
    assert (run.code, run.errors) == (0, "")
    assert run.reasons["downgraded"][reason] >= 1


@pytest.mark.parametrize("reason", STAYED)
def test_reason_is_counted_for_which_a_connection_stays_tcp(reason: str, tmp_path: Path) -> None:
    action, times, options = STAYED[reason]
    log = tmp_path / "log"
    run = linked.run(PYTHON, "-c", BEGIN + action, eager=False, options=options, log=log)
    assert (run.code, run.errors) == (0, "")
    assert run.counts["links"] == 0
    assert run.reasons["stayed_tcp"] == {reason: times}
    lines = log.read_text().splitlines()
    # Without a descriptor, there is no line.
    assert len(lines) == (0 if reason == "not_met" else times)
    assert all(re.search(r"^pid=\d+ fd=\d+ .*stays TCP: .", line) for line in lines)


@pytest.mark.parametrize("exchanges", [1, 40])
def test_reason_is_counted_if_the_other_end_is_not_linked(exchanges: int) -> None:
    port = free_port()
    server = f"""
import socket
with socket.create_server(("127.0.0.1", {port})) as listener:
    while True:
        connection, _ = listener.accept()
        while got := connection.recv(100):
            connection.sendall(got)
"""
    client = f"""
import socket
near = socket.create_connection(("127.0.0.1", {port}))
for _ in range({exchanges}):
    near.sendall(b"question")
    assert near.recv(8) == b"question"
"""
    with serving(PYTHON, "-c", server, port=port, is_linked=False):
        run = linked.run(PYTHON, "-c", client, eager=False)
    assert (run.code, run.errors) == (0, "")
    assert run.reasons["stayed_tcp"] == {"short" if exchanges == 1 else "no_answer": 1}
