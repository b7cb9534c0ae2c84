# SPDX-License-Identifier: Apache-2.0
"""A client and a server over TCP and UDP that does what its standard input says, a line a time."""

import contextlib
import ctypes
import errno
import platform
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

KEPT: dict[str, socket.socket] = {}
DESTINATIONS: dict[str, tuple[str, int] | None] = {}
THREADS: dict[str, threading.Thread] = {}
IP_RECVERR = 11
LIBC = ctypes.CDLL(None, use_errno=True)


def family_of(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def listen(address: str, port: str = "0", backlog: str = "64", reuse: str = "") -> int:
    """Echoes; prints the port."""
    server = socket.socket(family_of(address))
    # Connections to the service that had the port before may still be open.
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if reuse:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    server.bind((address, int(port)))
    server.listen(int(backlog))
    threading.Thread(target=accept, args=(server,), daemon=True).start()
    KEPT[f"listener {server.getsockname()[1]}"] = server
    return int(server.getsockname()[1])


def accept(server: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = server.accept()
            threading.Thread(target=echo, args=(connection,), daemon=True).start()


def echo(connection: socket.socket) -> None:
    with connection, contextlib.suppress(OSError):
        while data := connection.recv(65536):
            connection.sendall(data)


def close_listener(port: str) -> str:
    """The port can be used by another service then."""
    server = KEPT.pop(f"listener {port}")
    with contextlib.suppress(OSError):
        server.shutdown(socket.SHUT_RDWR)
    server.close()
    return "closed"


def open_connection(name: str, address: str, port: str) -> str:
    KEPT[name] = socket.create_connection((address, int(port)))
    return "open"


def connect_again(name: str, address: str, port: str) -> str:
    """The same socket, disconnected before."""
    connection = KEPT[name]
    disconnect(connection)
    connection.connect((address, int(port)))
    return "open"


def disconnect(connection: socket.socket) -> None:
    nowhere = struct.pack("16x")
    if LIBC.connect(connection.fileno(), nowhere, len(nowhere)):
        raise OSError(ctypes.get_errno(), "connect")


def listen_again(name: str) -> int:
    """A socket that was connected; prints its port."""
    connection = KEPT[name]
    disconnect(connection)
    connection.bind(("", 0))
    connection.listen()
    threading.Thread(target=accept, args=(connection,), daemon=True).start()
    return int(connection.getsockname()[1])


def exchange(name: str, size: str) -> str:
    """Sends, and waits for as much."""
    exchange_on(KEPT[name], int(size))
    return "done"


def exchange_on(connection: socket.socket, size: int) -> None:
    connection.sendall(b"x" * size)
    missing = size
    while missing:
        missing -= len(connection.recv(missing))


def close(name: str) -> str:
    KEPT.pop(name).close()
    return "closed"


def short(address: str, port: str, count: str, size: str) -> str:
    """Connections that are opened, used once and closed."""
    for _ in range(int(count)):
        with socket.create_connection((address, int(port))) as connection:
            exchange_on(connection, int(size))
            # The server closes when it has seen the end; what it closes is never reset.
            connection.shutdown(socket.SHUT_WR)
            assert not connection.recv(1)
    return "done"


def refused(address: str, port: str) -> str:
    """A connect that fails; prints the reason."""
    try:
        socket.create_connection((address, int(port)))
    except OSError as error:
        return type(error).__name__
    return "connected"


def refused_ports(address: str, first: str, count: str) -> str:
    """The same at many ports."""
    for port in range(int(first), int(first) + int(count)):
        assert refused(address, str(port)) == "ConnectionRefusedError"
    return "done"


def connect_without_answer(name: str, address: str, port: str) -> str:
    """Begins a connect, and does not wait."""
    client = socket.socket(family_of(address))
    client.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        client.connect((address, int(port)))
        return "connected"
    KEPT[name] = client
    return "waiting"


def begin_exchange(name: str, size: str) -> str:
    """As `exchange`, in a thread; `join` waits for its end."""
    THREADS[name] = threading.Thread(target=exchange_on, args=(KEPT[name], int(size)))
    THREADS[name].start()
    return "begun"


def reset(name: str) -> str:
    """Closes with a RST."""
    connection = KEPT.pop(name)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    return "closed"


def time_out(name: str) -> str:
    """Sends without an answer, until the kernel gives the connection up; prints the reason."""
    connection = KEPT[name]
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 50)
    connection.sendall(b"x")
    try:
        connection.recv(1)
    except OSError as error:
        return type(error).__name__
    return "answered"


def connect_datagrams(name: str, address: str, port: str) -> str:
    """A UDP socket with a peer."""
    KEPT[name] = socket.socket(family_of(address), socket.SOCK_DGRAM)
    KEPT[name].connect((address, int(port)))
    return "connected"


def failed_send(name: str, size: str) -> str:
    """Prints why nothing is sent."""
    try:
        KEPT[name].send(b"x" * int(size))
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "sent"


def bind(address: str, port: str = "0", how: str = "address", threads: str = "1") -> int:
    """Echoes datagrams: to the address that recvfrom() returns, or over a connected socket; or
    keeps them. All threads use one socket."""
    server = socket.socket(family_of(address), socket.SOCK_DGRAM)
    server.bind((address, int(port)))
    for _ in range(int(threads)):
        threading.Thread(target=echo_datagrams, args=(server, how), daemon=True).start()
    return int(server.getsockname()[1])


def echo_datagrams(server: socket.socket, how: str) -> None:
    while True:
        data, peer = server.recvfrom(65536)
        if how == "connect":
            server.connect(peer)
            server.send(data)
        elif how != "silent":
            server.sendto(data, peer)


def datagrams(how: str, address: str, port: str, count: str, size: str) -> str:
    """Sends datagrams and waits for each reply, from one socket."""
    with socket.socket(family_of(address), socket.SOCK_DGRAM) as client:
        if how == "connected":
            client.connect((address, int(port)))
        for _ in range(int(count)):
            if how == "connected":
                client.send(b"x" * int(size))
            else:
                client.sendto(b"x" * int(size), (address, int(port)))
            assert len(client.recv(65536)) == int(size)
    return "done"


def datagrams_elsewhere(address: str, port: str, other: str) -> str:
    """A connected socket sends to its peer, and to another port by address. Only the peer
    may answer."""
    with socket.socket(family_of(address), socket.SOCK_DGRAM) as client:
        client.connect((address, int(port)))
        client.send(b"x" * 10)
        client.sendto(b"x" * 20, (address, int(other)))
        client.send(b"x" * 10)
        client.sendto(b"x" * 10, (address, int(port)))
        client.sendto(b"x" * 20, (address, int(other)))
        for _ in range(3):
            client.recvfrom(64, socket.MSG_PEEK)
            assert len(client.recvfrom(64)[0]) == 10
    return "done"


def udp(name: str, how: str, address: str, port: str, local: str = "0") -> str:
    """A socket that stays; 0: the kernel chooses its port at the first datagram."""
    kept = KEPT[name] = socket.socket(family_of(address), socket.SOCK_DGRAM)
    if local != "0":
        kept.bind(("::" if ":" in address else "0.0.0.0", int(local)))
    if how == "connected":
        kept.connect((address, int(port)))
    DESTINATIONS[name] = (address, int(port)) if how == "unconnected" else None
    return "open"


def send(name: str) -> str:
    destination = DESTINATIONS[name]
    if destination:
        KEPT[name].sendto(b"x" * 10, destination)
    else:
        KEPT[name].send(b"x" * 10)
    return "sent"


def receive(name: str) -> str:
    """What is sent afterwards goes to the sender of this datagram."""
    data, (address, port, *_) = KEPT[name].recvfrom(64)
    if DESTINATIONS[name]:
        DESTINATIONS[name] = (address, port)
    return str(len(data))


def lost_datagram(address: str, port: str) -> str:
    """Sends to a port that no socket is bound to; prints the error of the next receive."""
    with socket.socket(family_of(address), socket.SOCK_DGRAM) as client:
        client.connect((address, int(port)))
        client.send(b"x")
        try:
            client.recv(1)
        except OSError as error:
            return type(error).__name__
    return "no error"


def returned_datagram(address: str, port: str) -> str:
    """The same, and reads the datagram that came back with the error."""
    with socket.socket(family_of(address), socket.SOCK_DGRAM) as client:
        client.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
        client.connect((address, int(port)))
        client.send(b"x")
        with contextlib.suppress(ConnectionRefusedError):
            client.recv(1)
        data, *_ = client.recvmsg(64, 256, socket.MSG_ERRQUEUE)
        return data.decode()


def interrupted_receive(address: str, port: str) -> str:
    """A signal arrives during a receive."""

    def interrupt(*_: object) -> None:
        raise InterruptedError

    signal.signal(signal.SIGALRM, interrupt)
    with socket.socket(family_of(address), socket.SOCK_DGRAM) as client:
        client.connect((address, int(port)))
        client.send(b"x")
        with contextlib.suppress(InterruptedError):
            signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
            client.recv(1)
        signal.setitimer(signal.ITIMER_REAL, 0)
    return "interrupted"


def contended_send(waiting: str, first: str, second: str, port: str) -> str:
    """Two threads use one socket: the first sends, and waits in the kernel for room, because
    datagrams to an address without a neighbour fill the buffer; the second then sends, too."""
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    with contextlib.suppress(BlockingIOError):
        while True:
            client.sendto(b"x" * 1000, socket.MSG_DONTWAIT, (waiting, int(port)))
    thread = threading.Thread(target=client.sendto, args=(b"first", (first, int(port))))
    thread.start()
    while not is_in_sendto(thread):
        time.sleep(0.001)
    with contextlib.suppress(BlockingIOError):
        client.sendto(b"second", socket.MSG_DONTWAIT, (second, int(port)))
    KEPT["contended"], THREADS["contended"] = client, thread
    return "waiting"


def is_in_sendto(thread: threading.Thread) -> bool:
    """Whether it waits in that call: another call has another number."""
    call = Path(f"/proc/self/task/{thread.native_id}/syscall").read_text().split()[0]
    return call == {"x86_64": "44", "aarch64": "206"}[platform.machine()]


def join(name: str) -> str:
    THREADS.pop(name).join()
    return "done"


COMMANDS: dict[str, Callable[..., Any]] = {
    "listen": listen,
    "close_listener": close_listener,
    "open": open_connection,
    "connect_again": connect_again,
    "listen_again": listen_again,
    "exchange": exchange,
    "close": close,
    "short": short,
    "refused": refused,
    "refused_ports": refused_ports,
    "connect_without_answer": connect_without_answer,
    "begin_exchange": begin_exchange,
    "reset": reset,
    "time_out": time_out,
    "connect_datagrams": connect_datagrams,
    "failed_send": failed_send,
    "bind": bind,
    "datagrams": datagrams,
    "datagrams_elsewhere": datagrams_elsewhere,
    "udp": udp,
    "send": send,
    "receive": receive,
    "lost_datagram": lost_datagram,
    "returned_datagram": returned_datagram,
    "interrupted_receive": interrupted_receive,
    "contended_send": contended_send,
    "join": join,
}

for line in sys.stdin:
    command, *words = line.split()
    print(COMMANDS[command](*words), flush=True)
