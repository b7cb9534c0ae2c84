# SPDX-License-Identifier: Apache-2.0
"""What the hook finds, where, and what it counts."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.hook.conftest import CASES, Compile
from tests.hook.hooked import Seen, hooked, plain, rules

PRELUDE = """
import ctypes, os, socket, sys, threading
def tcp():
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
    return client, accepted
"""


def run(folder: Path, text: str, script: str) -> Seen:
    """A Python script, which must end well, under rules."""
    seen = hooked([sys.executable, "-S", "-c", PRELUDE + script], folder, text)
    assert seen.behaviour.code == 0, seen.behaviour.err
    return seen


def test_a_keyword_split_over_calls_is_found_where_it_begins(tmp_path: Path) -> None:
    script = """
client, accepted = tcp()
for part in (b"..nee", b"d", b"le..needle"):
    client.sendall(part)
    got = b""
    while len(got) < len(part):
        got += accepted.recv(3)
"""
    seen = run(tmp_path, rules("needle", direction="both"), script)
    assert seen.keywords("out") == [("needle", 2), ("needle", 10)]
    assert seen.keywords("in") == [("needle", 2), ("needle", 10)]


def test_an_event_names_both_ends(tmp_path: Path) -> None:
    script = """
client, accepted = tcp()
print("%s:%d %s:%d" % (client.getsockname() + accepted.getsockname()))
client.sendall(b"needle"); accepted.recv(9)
"""
    seen = run(tmp_path, rules("needle"), script)
    [event] = seen.events
    client, server = seen.behaviour.out.split()
    assert (event["local"], event["remote"]) == (server, client)
    assert (event["function"], event["direction"], event["action"]) == ("recv", "in", "trace")


def test_only_bytes_really_read_are_searched(tmp_path: Path) -> None:
    script = """
client, accepted = tcp()
buffer = bytearray(b"....needle")
client.sendall(b"1234")
assert accepted.recv_into(buffer) == 4
client.close()
assert accepted.recv_into(buffer) == 0
"""
    assert run(tmp_path, rules("needle"), script).events == []


def test_only_bytes_really_written_are_searched_and_once(tmp_path: Path) -> None:
    script = """
client, accepted = tcp()
client.setblocking(False)
data = memoryview(b"x" * 5_000_000 + b"needle" + b"x" * 5_000_000)
sent = 0
calls = 0
while sent < len(data):
    try:
        sent += client.send(data[sent:])
        calls += 1
    except BlockingIOError:
        left = 400_000
        accepted.setblocking(False)
        while left > 0:
            try:
                left -= len(accepted.recv(65536))
            except BlockingIOError:
                break
assert calls > 1
"""
    both = rules("needle", direction="out") + rules("other", direction="out", action="block")
    for text in (rules("needle", direction="out"), both):
        assert run(tmp_path, text, script).keywords("out") == [("needle", 5_000_000)]


def test_a_peek_neither_counts_twice_nor_moves_on(tmp_path: Path) -> None:
    script = """
client, accepted = tcp()
client.sendall(b"nee")
assert accepted.recv(3, socket.MSG_PEEK) == b"nee"
assert accepted.recv(3, socket.MSG_PEEK) == b"nee"
assert accepted.recv(3) == b"nee"
client.sendall(b"dle")
accepted.recv(9, socket.MSG_PEEK); accepted.recv(9)
"""
    assert run(tmp_path, rules("needle"), script).keywords("in") == [("needle", 0)]


def test_discarded_bytes_break_a_keyword_and_are_counted(tmp_path: Path) -> None:
    script = """
client, accepted = tcp()
client.sendall(b"nee..dle")
assert accepted.recv(3) == b"nee"
assert len(accepted.recv(2, socket.MSG_TRUNC)) == 2
assert accepted.recv(3) == b"dle"
client.sendall(b"needle"); accepted.recv(9)
"""
    assert run(tmp_path, rules("needle"), script).keywords("in") == [("needle", 8)]


def test_a_unix_stream_delivers_what_it_is_asked_to_truncate(tmp_path: Path) -> None:
    script = """
a, b = socket.socketpair()
a.sendall(b"needle")
assert b.recv(9, socket.MSG_TRUNC) == b"needle"
"""
    assert run(tmp_path, rules("needle", scope="all"), script).keywords("in") == [("needle", 0)]


def test_duplicates_are_one_connection(tmp_path: Path) -> None:
    script = """
client, accepted = tcp()
copy = socket.socket(fileno=os.dup(accepted.fileno()))
client.sendall(b"nee"); accepted.recv(3)
accepted.close()
client.sendall(b"dle"); copy.recv(3)
"""
    assert run(tmp_path, rules("needle"), script).keywords("in") == [("needle", 0)]


def test_duplicates_of_a_socket_from_elsewhere_are_one_connection(tmp_path: Path) -> None:
    script = """
a, b = socket.socketpair()
client, accepted = tcp()
socket.send_fds(a, [b"x"], [accepted.fileno()])
accepted.close()
_, [fd], *_ = socket.recv_fds(b, 1, 1)
copy = os.dup(fd)
client.sendall(b"needle")
os.read(fd, 3); os.read(copy, 3)
"""
    assert run(tmp_path, rules("needle"), script).keywords("in") == [("needle", 0)]


def test_a_number_used_again_is_another_connection(tmp_path: Path) -> None:
    script = """
client, accepted = tcp()
client.sendall(b"nee"); accepted.recv(3)
number = accepted.fileno()
client.close(); accepted.close()
client, accepted = tcp()
assert number in (client.fileno(), accepted.fileno())
for a, b in ((client, accepted), (accepted, client)):
    a.sendall(b"dle"); b.recv(3)
    a.sendall(b"needle"); b.recv(9)
"""
    assert run(tmp_path, rules("needle"), script).keywords("in") == [("needle", 3), ("needle", 3)]


def test_a_socket_that_connects_anew_is_another_connection(tmp_path: Path) -> None:
    script = """
client, accepted = tcp()
client.sendall(b"nee")
libc = ctypes.CDLL(None)
assert libc.connect(client.fileno(), bytes(16), 16) == 0
with socket.create_server(("127.0.0.1", 0)) as server:
    client.connect(server.getsockname())
    accepted, _ = server.accept()
client.sendall(b"dle"); client.sendall(b"needle")
"""
    seen = run(tmp_path, rules("needle", direction="out"), script)
    assert seen.keywords("out") == [("needle", 3)]


@pytest.mark.parametrize("way", ["passed", "reopened"])
def test_a_file_under_the_number_of_a_socket_that_was_closed_unseen(
    way: str, tmp_path: Path
) -> None:
    script = f"""
with open("file", "wb") as file:
    file.write(b"needle")
client, accepted = tcp()
client.sendall(b"x"); accepted.recv(1)
number = accepted.detach()
libc = ctypes.CDLL(None)
if {way!r} == "passed":
    a, b = socket.socketpair()
    with open("file", "rb") as file:
        socket.send_fds(a, [b"x"], [file.fileno()])
    libc.__close_nocancel(number)
    _, [fd], *_ = socket.recv_fds(b, 1, 1)
else:
    libc.fdopen.restype = libc.freopen.restype = ctypes.c_void_p
    libc.freopen.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p]
    libc.freopen(b"file", b"r", libc.fdopen(number, b"r"))
    fd = number
assert fd == number
assert os.read(fd, 9) == b"needle"
"""
    assert run(tmp_path, rules("needle", scope="all"), script).events == []


def test_scopes(tmp_path: Path) -> None:
    script = """
http, web = tcp()
plain, server = tcp()
http.sendall(b"GE"); web.recv(2)
http.sendall(b"T / HTTP/1.1 needle"); web.recv(99)
plain.sendall(b"* needle"); server.recv(99)
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
    a, b = socket.socketpair(socket.AF_UNIX, kind)
    a.sendall(b"GET needle"); b.recv(99)
"""
    offsets = {}
    for scope in ("http", "tcp", "all"):
        found = run(tmp_path, rules("needle", scope=scope), script).keywords("in")
        offsets[scope] = [offset for _, offset in found]
    assert offsets == {"http": [15, 4], "tcp": [15, 2], "all": [15, 2, 4, 4, 4]}


def test_every_datagram_is_searched_alone(tmp_path: Path) -> None:
    script = """
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
for part in (b"nee", b"dle", b"a needle", b"cut off: needle"):
    a.send(part); b.recv(12)
"""
    seen = run(tmp_path, rules("needle", scope="all", direction="both"), script)
    assert seen.keywords("in") == [("needle", 2)]
    assert seen.keywords("out") == [("needle", 2), ("needle", 9)]


def test_files_are_never_searched(tmp_path: Path) -> None:
    script = """
with open("file", "wb", buffering=0) as file:
    file.write(b"needle" * 1000)
client, accepted = tcp()
number = client.fileno()
client.close()
# The number of a socket that was closed unseen, by stdio.
stream = accepted.detach()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
libc.fclose.argtypes = [ctypes.c_void_p]
libc.fclose(libc.fdopen(stream, b"r"))
for _ in range(3):
    fd = os.open("file", os.O_RDONLY)
    os.read(fd, 6000); os.readv(fd, [bytearray(8)]); os.write(1, b"needle")
a, b = os.pipe()
os.write(b, b"needle"); os.read(a, 6)
"""
    seen = run(tmp_path, rules("needle", scope="all", direction="both"), script)
    assert seen.events == []
    functions = {row["function"]: row for row in seen.stats["functions"]}
    assert functions["read"]["calls_other"] > 0
    assert functions["read"]["bytes_searched"] == functions["write"]["bytes_searched"] == 0


def test_what_cannot_be_seen_is_counted(tmp_path: Path) -> None:
    script = """
client, accepted = tcp()
with open("file", "wb") as file:
    file.write(b"needle")
with open("file", "rb") as file:
    os.sendfile(client.fileno(), file.fileno(), 0, 6)
libc = ctypes.CDLL(None)
libc.fdopen(accepted.fileno(), b"r")
libc.syscall(425, 0, None)
"""
    seen = run(tmp_path, rules("needle", direction="out"), script)
    assert seen.events == []
    unseen = seen.stats["not_seen"]
    assert (unseen["stdio_sockets"], unseen["io_uring_setups"]) == (1, 1)
    functions = {row["function"]: row for row in seen.stats["functions"]}
    sendfile = {"sendfile", "sendfile64"} & functions.keys()
    assert [functions[name]["bytes_unseen"] for name in sendfile] == [6]


def test_a_child_of_fork_goes_on_by_itself(tmp_path: Path) -> None:
    script = """
client, accepted = tcp()
client.sendall(b"nee"); accepted.recv(3)
if os.fork() == 0:
    client.sendall(b"dle"); accepted.recv(3)
    os._exit(0)
os.wait()
client.sendall(b"dle"); accepted.recv(3)
"""
    seen = run(tmp_path, rules("needle"), script)
    assert seen.keywords("in") == [("needle", 0), ("needle", 0)]
    assert len({event["pid"] for event in seen.events}) == 2
    assert all(event["pid"] == event["tid"] for event in seen.events)


def test_a_child_of_vfork_leaves_its_parents_connections_alone(
    compile_case: Compile, tmp_path: Path
) -> None:
    seen = hooked([compile_case("vforks")], tmp_path, rules("before", "into", scope="all"))
    assert ("before", 0) in seen.keywords("in")


def test_threads_record_side_by_side(tmp_path: Path) -> None:
    script = """
def work():
    a, b = socket.socketpair()
    for _ in range(200):
        a.sendall(b"needle"); b.recv(6)
threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    seen = run(tmp_path, rules("needle", scope="all"), script)
    assert seen.stats["events"]["lost"] + len(seen.events) == 1200
    by_thread: dict[int, list[int]] = {}
    for event in seen.events:
        by_thread.setdefault(event["tid"], []).append(event["offset"])
    assert len(by_thread) == 6
    assert all(offsets == sorted(offsets) for offsets in by_thread.values())


@pytest.mark.parametrize("way", ["inherited", "closed"])
def test_a_program_that_is_executed_later_is_hooked_too(way: str, tmp_path: Path) -> None:
    inner = "import socket; a, b = socket.socketpair(); a.sendall(b'needle'); b.recv(6)"
    script = f"""
if {way!r} == "closed":
    os.closerange(3, 5000)
os.execv(sys.executable, [sys.executable, "-S", "-c", {inner!r}])
"""
    assert run(tmp_path, rules("needle", scope="all"), script).keywords("in") == [("needle", 0)]


def test_a_constructor_that_runs_first_is_forwarded(tmp_path: Path) -> None:
    sources = CASES.parent / "library"
    library, program = tmp_path / "libearly.so", tmp_path / "main"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, sources / "early.c"], check=True)
    link = [f"-L{tmp_path}", "-learly", f"-Wl,-rpath,{tmp_path}"]
    subprocess.run(["cc", "-o", program, sources / "main.c", *link], check=True)
    expected = plain([program], tmp_path)
    assert expected.code == 0
    seen = hooked([program], tmp_path, rules("after", "before", scope="all", direction="both"))
    assert seen.behaviour == expected
    assert seen.keywords("in") == [("after", 6)]


def test_a_program_that_begins_with_a_child_of_vfork_is_searched(
    compile_case: Compile, tmp_path: Path
) -> None:
    text = rules("needle", scope="all", direction="out", action="block")
    seen = hooked([compile_case("vforks_first")], tmp_path, text)
    assert 'write(pair[0], "a needle", 8) = -1, errno 104' in seen.behaviour.out
    [event] = seen.events
    assert (event["pid"], event["action"]) == (event["tid"], "block")


def test_what_comes_after_a_jump_out_of_vfork_is_searched(
    compile_case: Compile, tmp_path: Path
) -> None:
    text = rules("needle", scope="all", direction="both")
    seen = hooked([compile_case("vforks_left")], tmp_path, text)
    expected = [("needle", offset) for offset in (0, 8, 0, 16)]
    assert seen.keywords("out") == expected
    assert seen.keywords("in") == expected
