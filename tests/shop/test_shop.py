# SPDX-License-Identifier: Apache-2.0
"""services/shop as a plan starts it: three services of the jar, each with its own PostgreSQL."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.hello.test_hello import ROOT, request
from tests.hook.programs.test_postgresql import programs
from tests.peers.test_traces import AGENT
from tests.spans.conftest import receiving
from tests.waiting import SECONDS, wait_for

from tare.lab.environments.ports import free_port

pytestmark = pytest.mark.integration
SHOP = ROOT / "services/shop"
JAR, START_DATABASE = SHOP / "target/shop.jar", SHOP / "start-database"
LOCAL = "127.0.0.1"
SERVICES = ("users", "payments", "orders")
AMOUNT = 7
SLEEP_US = 3000
JVM = ("-Xms64m", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
SETTINGS = (f"--shop.amount={AMOUNT}", "--shop.linpack1-times=1", "--shop.linpack2-times=1")
# The spans of an order, each above the spans in it, in the order of their starts.
TREE = """\
orders: GET /Orders/create/id/{id} (server)
    orders: LargeWrite
    orders: LargeRead
    orders: SmallFile
    orders: GET (client)
        users: GET /users/{id} (server)
            users: SELECT shop.users (client)
            users: Linpack1
    orders: GET (client)
        payments: GET /payment/transfer/id/{id}/amount/{amount} (server)
            payments: SleepTask
            payments: Linpack2
            payments: PUT (client)
                users: PUT /users/{id} (server)
                    users: SELECT shop.users (client)
                    users: UPDATE shop.users (client)
    orders: INSERT shop.orders (client)
"""


@dataclass
class Database:
    """A cluster in a folder, with its port; started and ended by the tests."""

    folder: Path
    port: int
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        with self.folder.with_suffix(".log").open("ab") as log:
            words = START_DATABASE, self.folder, LOCAL, str(self.port)
            self.process = subprocess.Popen(words, stdout=log, stderr=log)

    def is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.folder.with_suffix(".log").read_text()
        with socket.create_connection((LOCAL, self.port)):
            return True

    def stop(self) -> None:
        """Ends it although services are connected."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        try:
            assert self.process.wait(timeout=SECONDS) == 0
        finally:
            self.process.kill()

    def rows(self, query: str) -> list[list[str]]:
        words = programs() / "psql", "-AtX", "-F,", "-h", LOCAL, "-p", str(self.port), "-U", "shop"
        printed = subprocess.check_output([*words, "-c", query, "shop"], text=True)
        return [line.split(",") for line in printed.splitlines()]


@dataclass(frozen=True)
class Service:
    process: "subprocess.Popen[bytes]"
    port: int
    log: Path

    def is_ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        return self.get("/health") == (200, b"ready\n")

    def get(self, path: str) -> tuple[int, bytes]:
        return request(self.port, "GET", path)


@pytest.fixture(scope="module")
def databases() -> Iterator[dict[str, Database]]:
    programs()
    with tempfile.TemporaryDirectory(prefix="tare-shop-") as name, ExitStack() as stack:
        folder = Path(name)
        # The user that PostgreSQL runs as goes through it.
        folder.chmod(0o755)
        found = {service: Database(folder / service, free_port(LOCAL)) for service in SERVICES}
        for database in found.values():
            database.start()
            stack.callback(database.stop)
        for database in found.values():
            wait_for(database.is_ready, "a database")
        yield found


@contextmanager
def shop(
    databases: dict[str, Database], folder: Path, *options: str, **variables: str
) -> Iterator[dict[str, Service]]:
    """The three services; on their ends they send the spans that they still have."""
    java = shutil.which("java")
    if java is None:
        pytest.skip("no java on PATH (package openjdk-17-jdk-headless)")
    if not JAR.exists():
        pytest.skip("services/shop is not built (make shop)")
    ports = {name: free_port(LOCAL) for name in SERVICES}
    files = folder / "files"
    files.mkdir()
    services = {}
    try:
        for name, port in ports.items():
            log = folder / f"{name}.log"
            words = [
                *(java, *JVM, *options, "-jar", str(JAR), f"--spring.profiles.active={name}"),
                *(f"--server.port={port}", f"--server.address={LOCAL}", *SETTINGS),
                f"--shop.database=jdbc:postgresql://{LOCAL}:{databases[name].port}/shop",
                f"--shop.users-url=http://{LOCAL}:{ports['users']}",
                f"--shop.payments-url=http://{LOCAL}:{ports['payments']}",
                f"--shop.folder={files}",
            ]
            environment = os.environ | variables | {"OTEL_SERVICE_NAME": name}
            with log.open("wb") as out:
                process = subprocess.Popen(words, env=environment, stdout=out, stderr=out)
            services[name] = Service(process, port, log)
            # One after the other: on a busy machine, each has the whole time to start.
            wait_for(services[name].is_ready, f"{name} is ready: it")
        yield services
        assert [*files.iterdir()] == []
        for service in services.values():
            service.process.terminate()
        for service in services.values():
            assert service.process.wait(timeout=SECONDS) == 128 + signal.SIGTERM
    finally:
        for service in services.values():
            service.process.kill()
            service.process.wait()


def order(services: dict[str, Service], users: list[int]) -> None:
    """Orders of these users, several at once."""
    with ThreadPoolExecutor(8) as threads:
        answers = [*threads.map(lambda user: create(services, user), users)]
    assert {status for status, _ in answers} == {200}
    created = [json.loads(body) for _, body in answers]
    assert [entry["user"] for entry in created] == users
    assert len({entry["id"] for entry in created}) == len(users)


def create(services: dict[str, Service], user: object) -> tuple[int, bytes]:
    return services["orders"].get(f"/Orders/create/id/{user}")


def check_rows(databases: dict[str, Database], users: list[int]) -> None:
    """Each order is stored, and its user has paid for it."""
    mine = f"IN ({','.join(map(str, {*users}))})"
    query = f"SELECT user_id, amount FROM orders WHERE user_id {mine}"
    assert Counter(map(tuple, databases["orders"].rows(query))) == {
        (str(user), str(AMOUNT)): number for user, number in Counter(users).items()
    }
    paid = databases["users"].rows(f"SELECT id, spent FROM users WHERE id {mine}")
    assert {int(user): int(spent) for user, spent in paid} == {
        user: number * AMOUNT for user, number in Counter(users).items()
    }


def tree(rows: list[dict[str, Any]], root: dict[str, Any], depth: int = 0) -> str:
    inside = (row for row in rows if row["parent_id"] == root["span_id"])
    below = (tree(rows, row, depth + 1) for row in sorted(inside, key=lambda row: row["start_ns"]))
    return f"{'    ' * depth}{root['span']}\n{''.join(below)}"


def test_each_step_of_a_request_is_a_span(databases: dict[str, Database], tmp_path: Path) -> None:
    if not AGENT.exists():
        pytest.skip("opentelemetry.jar is not installed (setup/install-peers opentelemetry)")
    users = [1 + number % 5 for number in range(200)]
    with receiving(tmp_path / "spans.arrow") as receiver:
        with shop(
            databases, tmp_path, f"-javaagent:{AGENT}",
            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://{LOCAL}:{receiver.grpc}",
            OTEL_EXPORTER_OTLP_PROTOCOL="grpc", OTEL_METRICS_EXPORTER="none",
            # On a busy machine, requests could be faster than their spans are sent.
            OTEL_LOGS_EXPORTER="none", OTEL_BSP_MAX_QUEUE_SIZE="100000",
            SHOP_SLEEP_US=str(SLEEP_US),
        ) as services:  # fmt: skip
            order(services, users)
        check_rows(databases, users)
        code, _, err = receiver.stop()
        assert code == 0, err
        traces: dict[str, list[dict[str, Any]]] = {}
        for row in receiver.rows():
            traces.setdefault(row["trace_id"], []).append(row)
    orders = [
        (rows, row)
        for rows in traces.values()
        for row in rows
        if row["span"] == TREE.splitlines()[0]
    ]
    assert len(orders) == len(users)
    for rows, root in orders:
        assert tree(rows, root) == TREE
        assert len(rows) == TREE.count("\n")
        assert all(row["ok"] for row in rows)
        (sleep,) = (row for row in rows if row["span"] == "payments: SleepTask")
        assert sleep["duration_ns"] >= SLEEP_US * 1000


def test_without_the_agent_and_with_errors(databases: dict[str, Database], tmp_path: Path) -> None:
    users = [101 + number % 5 for number in range(100)]
    with shop(databases, tmp_path) as services:
        order(services, users)
        check_rows(databases, users)

        assert create(services, 5001) == (404, b"no user has the ID 5001\n")
        assert create(services, "x") == (400, b"id: expected a whole number (found x)\n")
        wrong = services["payments"].get("/payment/transfer/id/101/amount/0")
        assert wrong == (400, b"amount: expected 1 to 1000000 (found 0)\n")
        check_rows(databases, users)
        assert databases["orders"].rows("SELECT count(*) FROM orders WHERE user_id = 5001") == [
            ["0"]
        ]

        databases["users"].stop()
        for path in ("/users/1", "/health"):
            status, body = services["users"].get(path)
            assert status == 500
            assert body.startswith(b"database: ")
            assert body.count(b"\n") == 1
        assert create(services, 101)[0] == 502
        errors = [
            line for line in services["users"].log.read_text().splitlines() if " ERROR " in line
        ]
        assert len(errors) == 3
        assert "\tat " not in services["users"].log.read_text()

        databases["users"].start()
        # Each connection of before fails once.
        wait_for(lambda: create(services, 201)[0] == 200, "an order after the restart")
        check_rows(databases, [*users, 201])


def test_the_database_listens_where_it_should_and_not_as_root(
    databases: dict[str, Database],
) -> None:
    database = databases["payments"]
    state = database.folder / "cluster" / "postmaster.pid"
    wait_for(lambda: "ready" in state.read_text(), "the database")
    assert database.process is not None
    # The command itself becomes the server, so that signals reach it.
    status = Path(f"/proc/{database.process.pid}/status").read_text().splitlines()
    assert "Name:\tpostgres" in status
    assert "0" not in next(line for line in status if line.startswith("Uid:")).split()
    socket_folder, address = state.read_text().splitlines()[4:6]
    assert (socket_folder, address) == ("", LOCAL)
