# SPDX-License-Identifier: Apache-2.0
"""The first process of a virtual machine: runs the programs that this host asks for.

It runs as a script, with the standard library alone: `agent.py TOKEN_FILE ADDRESS/BITS INTERFACE`.
A client sends the token first, since any user of the host reaches the guest's address. A
connection is one request, in lines of JSON, and the program of it ends with it.
"""

import hmac
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

PORT = 1
"""Below all that services listen on."""
MOST_BYTES = 1 << 20
TOKEN_S = 5.0
"""A connection without the token ends after this time."""
WRITE_S = 0.05
"""A log is this much older on the host, at most."""
MOUNTS = (
    ("proc", "/proc", "proc"),
    ("sysfs", "/sys", "sysfs"),
    ("tmpfs", "/run", "tmpfs"),
    ("devpts", "/dev/pts", "devpts"),
    ("tmpfs", "/dev/shm", "tmpfs"),
    ("cgroup2", "/sys/fs/cgroup", "cgroup2"),
)


def main(token_file: str, address: str, interface: str) -> None:
    """Prepares the guest and serves until it is switched off."""
    token = Path(token_file).read_text(encoding="ascii")
    os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    for kind, where, source in MOUNTS:
        with suppress(OSError):
            Path(where).mkdir()
        subprocess.run(["mount", "-t", kind, source, where], check=False)
    for words in (
        ["link", "set", "lo", "up"],
        ["addr", "add", address, "dev", interface],
        ["link", "set", interface, "up"],
    ):
        subprocess.run(["ip", *words], check=True)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    listener = socket.create_server((address.partition("/")[0], PORT), backlog=64)
    while True:
        try:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection, token), daemon=True).start()
        except (OSError, RuntimeError):  # too many connections: the first process must not end
            time.sleep(0.1)


def serve(connection: socket.socket, token: str) -> None:
    """Answers one request; what goes wrong with it is the end of its connection alone."""
    with connection, suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(TOKEN_S)
        known = f"{token}\n".encode()
        if not hmac.compare_digest(connection.recv(len(known)), known):
            return
        connection.settimeout(None)
        with connection.makefile("rb") as lines:
            try:
                request = json.loads(lines.readline(MOST_BYTES))
                do = {"exec": call, "run": run, "sync": sync}[request["do"]]
                found = do(request, connection, lines)
            except (ValueError, KeyError) as error:
                found = {"error": f"a request that cannot be read: {error}"}
            answer(connection, found)


def answer(connection: socket.socket, values: dict[str, Any]) -> None:
    """Sends one line."""
    connection.sendall(json.dumps(values).encode() + b"\n")


def sync(_request: dict[str, Any], _connection: socket.socket, _lines: BinaryIO) -> dict[str, Any]:
    """Has the kernel write to the files of the host what programs wrote."""
    os.sync()
    return {}


def call(request: dict[str, Any], _connection: socket.socket, _lines: BinaryIO) -> dict[str, Any]:
    """Runs a short command, and returns what it prints."""
    try:
        done = subprocess.run(
            request["words"], env=request["variables"], capture_output=True, check=False
        )
    except OSError as error:
        return {"error": f"{request['words'][0]}: {error.strerror}"}
    texts = (output.decode(errors="replace") for output in (done.stdout, done.stderr))
    return {"code": done.returncode, **dict(zip(("stdout", "stderr"), texts, strict=True))}


def run(request: dict[str, Any], _connection: socket.socket, lines: BinaryIO) -> dict[str, Any]:
    """Runs a program to its end, with the signals that come meanwhile; kills its process group if
    the connection ends."""
    log = -1
    try:
        log = os.open(request["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        program = subprocess.Popen(
            request["words"],
            env=request["variables"],
            cwd=request["directory"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    except OSError as error:
        if log >= 0:
            os.close(log)
        return {"error": f"{error.filename}: {error.strerror}"}
    ended = threading.Event()
    writer = threading.Thread(target=write_through, args=(log, ended))
    writer.start()
    threading.Thread(target=forward, args=(program, lines, ended), daemon=True).start()
    code = program.wait()
    ended.set()
    writer.join()
    with suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
    return {"code": code}


def write_through(log: int, ended: threading.Event) -> None:
    """Has the kernel write to the file of the host what is new in a log, and closes it at the end
    of the program."""
    size, over = -1, False
    while not over:
        over = ended.wait(WRITE_S)
        with suppress(OSError):
            if size != os.fstat(log).st_size:
                size = os.fstat(log).st_size
                os.fsync(log)
    os.close(log)


def forward(program: "subprocess.Popen[bytes]", lines: BinaryIO, ended: threading.Event) -> None:
    """Passes on the signals that the host sends."""
    with suppress(OSError, ValueError):
        for line in lines:
            if ended.is_set():
                return
            program.send_signal(int(line))
    if not ended.is_set():
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)


def reap(server: int) -> None:
    """Waits for the server, and for all processes whose parents have ended: zombies would fill the
    table of processes. The guest ends if its first process does."""
    while os.wait()[0] != server:
        pass


if __name__ == "__main__":
    if server := os.fork():
        reap(server)
    else:
        main(*sys.argv[1:4])  # the kernel may add words of its own
