# SPDX-License-Identifier: Apache-2.0
"""The link of `netns` with a rate, loss and delay is like a link between two hosts."""

import errno
import os
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pydantic_core import PydanticCustomError
from tests.rights import may_make_namespaces
from tests.waiting import SECONDS

from tare.lab.environments import of_run
from tare.lab.environments.bridge_network import BridgeNetwork
from tare.lab.environments.environment import Program
from tare.lab.environments.fingerprint import fingerprint
from tare.lab.environments.netns import Netns
from tare.lab.environments.pod import enter_network
from tare.lab.processes.processes import Processes
from tare.plan.schema.environments import NetnsEnvironment
from tare.running.created_resources import made_things

MS = 1_000_000
DELAY = 20 * MS
SO_RCVBUFFORCE = 33
Found = TypeVar("Found")
Join = Callable[..., Netns]


@pytest.fixture
def join(processes: Processes) -> Iterator[Join]:
    """Makes a namespace whose link has some settings."""
    if not may_make_namespaces():
        pytest.skip("a network namespace needs root")
    with ExitStack() as stack:

        def join(bridge_network: BridgeNetwork | None = None, **settings: Any) -> Netns:
            table = NetnsEnvironment.model_validate({"type": "netns", **settings})
            try:
                Netns.check(table)
            except PydanticCustomError as missing:
                pytest.skip(f"a relay needs {missing.message()}")
            found = of_run(table, processes, f"1/{len(made_things())}/plain", bridge_network)
            assert isinstance(found, Netns)
            stack.callback(found.stop)
            found.prepare()
            return found

        yield join


def inside(place: Netns, make: Callable[[], Found]) -> Found:
    """Calls a function in the namespace, such as one that makes a socket."""

    def call() -> Found:
        # A namespace is that of a thread, and this thread ends.
        enter_network(Path(place.namespace))
        return make()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(call).result()


def listener(place: Netns) -> socket.socket:
    return inside(place, lambda: socket.create_server((place.address, 0), backlog=4096))


def connected(place: Netns) -> tuple[socket.socket, socket.socket]:
    """A client on this host, and the service in the namespace."""
    with closing(listener(place)) as server:
        client = socket.create_connection(server.getsockname(), SECONDS)
        service, _ = server.accept()
        service.settimeout(SECONDS)
    return client, service


def received(at: socket.socket) -> bytes:
    """All bytes until the other end sends no more."""
    return b"".join(iter(lambda: at.recv(1 << 20), b""))


def send_all(end: socket.socket, data: bytes) -> threading.Thread:
    """Sends bytes in a thread, and no more after them."""

    def send() -> None:
        end.sendall(data)
        end.shutdown(socket.SHUT_WR)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def stamped(sender: socket.socket, receiver: socket.socket) -> int:
    """How long a message was under way, in nanoseconds."""
    sender.send(struct.pack("q", time.monotonic_ns()))
    (sent,) = struct.unpack("q", receiver.recv(8))
    return int(time.monotonic_ns() - sent)


def test_the_delay_is_added_to_the_round_trip(
    join: Join, processes: Processes, tmp_path: Path
) -> None:
    join()
    found = {}
    for delay in ("0ms", "100ms"):
        settings = NetnsEnvironment.model_validate({"type": "netns", "delay": delay})
        found[delay] = fingerprint(settings, processes, tmp_path)["network_round_trip_ns"]
    assert found["0ms"] < 200 * MS <= found["100ms"]


def test_each_direction_has_the_delay(join: Join) -> None:
    place = join(delay="20ms")
    client, service = connected(place)
    with client, service:
        assert all(stamped(client, service) >= DELAY for _ in range(5))
        assert all(stamped(service, client) >= DELAY for _ in range(5))
    datagrams = inside(place, lambda: socket.socket(type=socket.SOCK_DGRAM))
    with datagrams, socket.socket(type=socket.SOCK_DGRAM) as user:
        datagrams.bind((place.address, 0))
        user.connect(datagrams.getsockname())
        user.send(b"hello")
        datagrams.connect(datagrams.recvfrom(5)[1])
        assert stamped(user, datagrams) >= DELAY
        assert stamped(datagrams, user) >= DELAY


def test_a_connection_takes_a_round_trip(join: Join) -> None:
    place = join(delay="20ms")
    with listener(place) as server:
        begun = time.monotonic_ns()
        with socket.create_connection(server.getsockname()):
            assert time.monotonic_ns() - begun >= 2 * DELAY


def test_services_of_one_run_are_two_links_apart(join: Join) -> None:
    bridge_network = BridgeNetwork()
    bridge_network.prepare()
    try:
        server_address, client_address = (join(bridge_network, delay="20ms") for _ in range(2))
        with listener(server_address) as server:
            address = server.getsockname()
            begun = time.monotonic_ns()
            with inside(client_address, lambda: socket.create_connection(address)):
                assert time.monotonic_ns() - begun >= 4 * DELAY
    finally:
        bridge_network.stop()


@pytest.mark.parametrize(
    "settings", [{"delay": "5ms"}, {"loss": "1%"}, {"delay": "1ms", "rate": "500 Mbit/s"}], ids=str
)
def test_streams_arrive_whole_in_both_directions_at_once(
    settings: dict[str, str], join: Join
) -> None:
    client, service = connected(join(**settings))
    data = random.Random(1).randbytes(4 << 20)
    with client, service:
        senders = [send_all(end, data) for end in (client, service)]
        with ThreadPoolExecutor(2) as readers:
            assert all(found == data for found in readers.map(received, (client, service)))
        for sender in senders:
            sender.join()


def test_an_end_that_sends_no_more_still_receives(join: Join) -> None:
    client, service = connected(join(delay="5ms"))
    with client, service:
        client.sendall(b"question")
        client.shutdown(socket.SHUT_WR)
        assert received(service) == b"question"
        sender = send_all(service, b"a" * (1 << 20))
        assert received(client) == b"a" * (1 << 20)
        sender.join()


def test_resets_and_refusals_arrive(join: Join) -> None:
    place = join(delay="5ms")
    client, service = connected(place)
    with client:
        service.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        service.close()
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    with listener(place) as server:
        address = server.getsockname()
    with socket.socket() as user:
        user.settimeout(SECONDS)
        assert user.connect_ex(address) == errno.ECONNREFUSED


def test_many_connections_are_open_at_once(join: Join) -> None:
    place = join(delay="5ms")
    with listener(place) as server, ExitStack() as stack:
        address = server.getsockname()
        with ThreadPoolExecutor(32) as users:
            clients = [*users.map(lambda _: socket.create_connection(address), range(1000))]
        services = {}
        for client in clients:
            stack.enter_context(client)
            service, user = server.accept()
            services[user] = stack.enter_context(service)
        for number, client in enumerate(clients):
            client.sendall(struct.pack("i", number))
        for number, client in enumerate(clients):
            service = services[client.getsockname()]
            assert struct.unpack("i", service.recv(4)) == (number,)
            service.sendall(b"done")
        assert all(client.recv(4) == b"done" for client in clients)


def test_datagrams_keep_their_order_and_the_asked_share_is_lost(join: Join) -> None:
    for loss, least, most in (("0%", 1000, 1000), ("20%", 737, 863)):  # 5 standard deviations
        place = join(loss=loss, delay="1ms")
        for end in connected(place):  # while it asks for the address, the kernel reorders and drops
            end.close()
        datagrams = inside(place, lambda: socket.socket(type=socket.SOCK_DGRAM))
        with datagrams, socket.socket(type=socket.SOCK_DGRAM) as user:
            datagrams.bind((place.address, 0))
            datagrams.settimeout(0.1)
            datagrams.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 4 << 20)
            user.connect(datagrams.getsockname())
            found, last = [], 0
            for number in range(1000):
                user.send(struct.pack("i", number))
            # What arrives after the others shows that none of them is under way.
            while not last:
                user.send(struct.pack("i", 1000))
                try:
                    while not last:
                        (number,) = struct.unpack("i", datagrams.recv(4))
                        last = number == 1000
                        found += [] if last else [number]
                except TimeoutError:
                    continue
            assert found == sorted(found)
            assert least <= len(found) <= most


def test_a_stream_takes_its_time_at_the_rate(join: Join) -> None:
    client, service = connected(join(rate="10 Mbit/s"))
    size = 500_000
    with client, service:
        begun = time.monotonic()
        sender = send_all(client, b"x" * size)
        assert len(received(service)) == size
        assert time.monotonic() - begun >= size * 8 / 10e6
        sender.join()


def test_the_relay_is_listed_and_no_process_of_the_service(
    join: Join, processes: Processes, tmp_path: Path
) -> None:
    place = join(delay="1ms")
    (made,) = (made for made in made_things() if made.owner == os.getpid())
    assert made.type == "relay"
    assert made.in_use
    log = tmp_path / "log"
    cpus = sorted(os.sched_getaffinity(0))
    service = place.start(Program("service", ["sleep", "600"], tmp_path, log, cpus))
    relay = next(
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdecimal() and made.name in (entry / "cmdline").read_text()
    )
    assert relay not in place.family(service).pids
    processes.stop([service])
    place.stop()
    assert made.name not in {each.name for each in made_things()}
    assert made.name not in dict(socket.if_nameindex()).values()
