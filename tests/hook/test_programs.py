# SPDX-License-Identifier: Apache-2.0
"""Whole programs behave the same under the hook: same output, same exit code."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.hook.hooked import COMMAND, Behaviour, hooked, plain, rules

RULES = rules("e", "Host", scope="all", direction="both") + rules(
    "never there", scope="all", direction="both", action="block"
)
PAGE = "".join(f"line {number} of the page\n" for number in range(20_000))


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def server(folder: Path, port: int, before: Sequence[str | Path] = ()) -> Iterator[None]:
    """An nginx that serves `folder`/page, its master and its workers, behind a command."""
    if shutil.which("nginx") is None:
        pytest.skip("nginx is not installed")
    folder.joinpath("page").write_text(PAGE)
    # Workers drop to another user; the memory that they inherited is still theirs.
    folder.chmod(0o755)
    user = "user nobody nogroup;" if os.geteuid() == 0 else ""
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    folder.joinpath("nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; worker_processes 2; {user} error_log stderr;"
        f"events {{}} http {{ access_log off; sendfile off; {temporary}"
        f"server {{ listen 127.0.0.1:{port}; root {folder}; }} }}"
    )
    command = [*before, "nginx", "-p", str(folder), "-c", "nginx.conf", "-e", "stderr"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.02)
        yield
    finally:
        process.terminate()
        _, err = process.communicate(timeout=20)
    assert process.returncode == 0, err


def get(port: int, path: str) -> tuple[bytes, bytes]:
    """Status line and body."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(f"GET /{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while part := connection.recv(65536):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.partition(b"\r\n")[0], body


@pytest.fixture
def readable() -> Iterator[Path]:
    """A folder that another user can read, too."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_nginx(readable: Path) -> None:
    answers = []
    file, events = readable / "rules.toml", readable / "events.jsonl"
    file.write_text(RULES)
    for before in ((), (COMMAND, "--rules", file, "--events", events, "--")):
        port = free_port()
        with server(readable, port, before):
            answers.append([get(port, path) for path in ("page", "absent", "page")])
    assert answers[0] == answers[1]
    assert answers[0][0] == (b"HTTP/1.1 200 OK", PAGE.encode())
    assert '"keyword":"Host"' in events.read_text()


def same(command: Sequence[str | Path], folder: Path) -> Behaviour:
    """How the program behaves in both ways."""
    expected = plain(command, folder)
    assert hooked(command, folder, RULES).behaviour == expected
    return expected


def test_curl(readable: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    port = free_port()
    with server(readable, port):
        url = f"http://127.0.0.1:{port}"
        assert same(["curl", "-sS", f"{url}/page"], readable).out == PAGE
        assert same(["curl", "-sSf", f"{url}/absent"], readable).code == 22
    assert same(["curl", "-sS", f"http://127.0.0.1:{port}"], readable).code == 7


PYTHON = """
import asyncio, hashlib, os, subprocess, sys, threading, concurrent.futures

async def answer(reader, writer):
    line = await reader.readline()
    writer.write(line.upper() * 1000)
    await writer.drain()
    writer.close()

async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async def ask(text):
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(text + b"\\n")
        got = await reader.read()
        writer.close()
        return hashlib.sha256(got).hexdigest()
    print(*await asyncio.gather(*(ask(b"number %d" % i) for i in range(50))), sep="\\n")
    process = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    print(await process.communicate(b"through a pipe"))

asyncio.run(main())
print(subprocess.run(["sh", "-c", "echo out; echo err >&2; exit 3"], capture_output=True))
with concurrent.futures.ProcessPoolExecutor(2) as pool:
    print(*pool.map(abs, range(-5, 5)))
sys.exit(5)
"""


def test_python(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PYTHON)
    assert same([sys.executable, "program.py"], tmp_path).code == 5


BASH = """
set -u
exec 3<>/dev/tcp/127.0.0.1/$1
printf 'GET /page HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n' >&3
read -r status <&3
echo "$status"
cat <&3 | tail -n 3
exec 3>&-
echo here | while read -r line; do echo "$line"; done
coproc cat
echo "to the coprocess" >&"${COPROC[1]}"
read -r line <&"${COPROC[0]}"
echo "$line"
diff <(seq 5) <(seq 5) && echo same
trap 'echo trapped' USR1
kill -USR1 $$
ls /proc/self/fd/2 >/dev/null
exit 9
"""


def test_bash(readable: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    (readable / "program.sh").write_text(BASH)
    port = free_port()
    with server(readable, port):
        behaviour = same(["bash", "program.sh", str(port)], readable)
    assert behaviour.code == 9
    assert "HTTP/1.1 200 OK" in behaviour.out


JAVA = """
import java.io.*;
import java.net.*;
import java.nio.ByteBuffer;
import java.nio.channels.*;
import java.util.concurrent.*;

class Program {
    public static void main(String[] arguments) throws Exception {
        try (var server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            var pool = Executors.newFixedThreadPool(4);
            pool.submit(() -> {
                for (int i = 0; i < 20; i++) {
                    var socket = server.accept();
                    pool.submit(() -> {
                        try (socket) {
                            socket.getInputStream().transferTo(socket.getOutputStream());
                        }
                        return null;
                    });
                }
                return null;
            });
            for (int i = 0; i < 20; i++) {
                try (var channel = SocketChannel.open(server.getLocalSocketAddress())) {
                    channel.write(ByteBuffer.wrap(("message " + i).getBytes()));
                    channel.shutdownOutput();
                    var buffer = ByteBuffer.allocate(100);
                    while (channel.read(buffer) >= 0) {}
                    System.out.println(new String(buffer.array(), 0, buffer.position()));
                }
            }
            pool.shutdown();
        }
        try (var closed = new Socket()) {
            closed.connect(new InetSocketAddress("127.0.0.1", 1));
        } catch (ConnectException error) {
            System.out.println(error.getMessage());
        }
        var process = new ProcessBuilder("sh", "-c", "echo from a child; exit 2").start();
        System.out.print(new String(process.getInputStream().readAllBytes()));
        System.exit(process.waitFor() + 4);
    }
}
"""


def test_a_jvm(tmp_path: Path) -> None:
    if shutil.which("java") is None:
        pytest.skip("no JVM is installed")
    assert same(["java", "-version"], tmp_path).code == 0
    (tmp_path / "Program.java").write_text(JAVA)
    behaviour = same(["java", "-XX:TieredStopAtLevel=1", "Program.java"], tmp_path)
    assert behaviour.code == 6
    assert "message 19\n" in behaviour.out
