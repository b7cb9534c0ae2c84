# SPDX-License-Identifier: Apache-2.0
"""A certificate, and servers that speak TLS as a test wants it."""

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

BODY = bytes(range(256)) * 1200
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


def certificate(
    folder: Path, names: str = "IP:127.0.0.1,DNS:localhost", authority: bool = False
) -> tuple[Path, Path]:
    """A certificate that signed itself, for these names, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder.mkdir(exist_ok=True)
    signed, key = folder / "certificate.pem", folder / "key.pem"
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
        f" -subj /CN={folder.name} -addext subjectAltName={names}"
        f" -addext basicConstraints=critical,CA:{str(authority).upper()}"
    )
    subprocess.run(
        [*command.split(), "-keyout", key, "-out", signed], check=True, capture_output=True
    )
    return signed, key


def certificate_of_version_1(folder: Path) -> tuple[Path, Path]:
    """A certificate without names and extensions, and its key."""
    _, key = certificate(folder)
    request, signed = folder / "request.pem", folder / "old.pem"
    for command in (
        f"req -new -key {key} -subj /CN=old -out {request}",
        f"x509 -req -in {request} -signkey {key} -out {signed} -days 2",
        f"x509 -in {signed} -noout -text",
    ):
        done = subprocess.run(["openssl", *command.split()], check=True, capture_output=True)
    if b"Version: 1" not in done.stdout:
        pytest.skip("this openssl does not make certificates of version 1")
    return signed, key


def of_nginx(pair: tuple[Path, Path]) -> str:
    """What a server of nginx needs for TLS, and a file of its folder to put and get."""
    return (
        f"ssl_certificate {pair[0]}; ssl_certificate_key {pair[1]}; client_max_body_size 10m;"
        " ssl_session_cache shared:tls:1m; location = /large { root .; dav_methods PUT; }"
    )


Serve = Callable[[ssl.SSLSocket], None]


@contextmanager
def server(
    pair: tuple[Path, Path], serve: Serve, before: Callable[[], None] = lambda: None
) -> Iterator[str]:
    """Serves each connection by a thread of its own; `before` is run before its handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)

        def take(plain: socket.socket) -> None:
            with plain, suppress(OSError):
                before()
                with context.wrap_socket(plain, server_side=True) as stream:
                    serve(stream)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=take, args=[listener.accept()[0]], daemon=True).start()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"https://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def requests(stream: ssl.SSLSocket) -> Iterator[bytes]:
    """The requests without a body that come, until the client goes."""
    got = b""
    while more := stream.recv(4096):
        got += more
        if got.endswith(b"\r\n\r\n"):
            yield got
            got = b""
