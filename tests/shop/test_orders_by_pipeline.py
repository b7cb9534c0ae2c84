# SPDX-License-Identifier: Apache-2.0
"""The pipeline of Vinken's thesis carries the spans of 10,000 orders of the shop.

Agents of OpenTelemetry -> Jaeger's collector -> Kafka -> Jaeger's ingester -> Elasticsearch -> the
importer of Tare; the same agents send to Tare's receiver.
"""

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests import in_process
from tests.hook.programs.test_postgresql import programs
from tests.peers.programs import BIN
from tests.peers.test_pipeline import require_pipeline, wait_longer
from tests.peers.test_traces import AGENT
from tests.shop.test_shop import JAR, JVM, SETTINGS, START_DATABASE, TREE

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1_800)]
LOAD = Path(__file__).with_name("load.py")
ORDERS, CONNECTIONS = 10_000, 4
SERVICES = ("users", "payments")
OTHERS = '''\
[[services]]
name = "{name}-database"
command = "sh {database} {{dir}}/data {{address}} {{port}}"
ready = {{ tcp = true, timeout = "300s" }}
stop_signal = "INT"
stop_timeout = "60s"

[[services]]
name = "{name}"
command = """
{java} --spring.profiles.active={name} {more}
--shop.database=jdbc:postgresql://{{{name}-database.address}}:{{{name}-database.port}}/shop
"""
ready = {{ http = "/health", timeout = "300s" }}
stop_timeout = "60s"
{variables}
'''
VARIABLES = 'environment = { OTEL_BSP_MAX_QUEUE_SIZE = "500000" }'


def plan() -> str:
    """The three services with their databases; in the second condition, traced by agents."""
    java = (
        f"java {' '.join(JVM)} -jar {JAR} --server.address={{address}} --server.port={{port}}"
        f" {' '.join(SETTINGS)}"
    )

    def service(name: str, more: str) -> str:
        return OTHERS.format(
            name=name, database=START_DATABASE, java=java, more=more, variables=VARIABLES
        )

    urls = "--shop.users-url=http://{users.address}:{users.port}"
    orders = service(
        "orders",
        f"{urls} --shop.payments-url=http://{{payments.address}}:{{payments.port}}"
        " --shop.folder={dir}",
    )
    # The last table is the service under test.
    head, _, last = orders.rpartition('[[services]]\nname = "orders"\n')
    load = f"{sys.executable} {LOAD} {{url}} {ORDERS} {CONNECTIONS} {{output}}"
    layers = ", ".join(
        f'{{ type = "spans", {key}, agent = "{AGENT}" }}'
        for key in ('service = "orders"', 'at = "payments"', 'at = "users"')
    )
    return f"""\
name = "pipeline"
budget = "3%"
blocks = 1
smoke = true
control = false
design = "blocks"
placement = "free"

[collect]
pipeline = "jaeger-kafka-elasticsearch"
programs = "{BIN}"
queue = 1000000

{service("users", "")}
{service("payments", urls)}
{head}
[service]
{last}
[load]
type = "command"
command = "{load}"
output = "requests.csv"
format = "locust"
path = "/Orders/create/id/1"
duration = "900s"

[[conditions]]
name = "plain"

[[conditions]]
name = "traced"
layers = [{layers}]
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tare-pipeline-test-") as name:
        # The user that PostgreSQL runs as goes through it.
        Path(name).chmod(0o755)
        yield Path(name)


def test_the_spans_of_all_orders_are_stored_with_equal_durations(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_pipeline()
    wait_longer(monkeypatch)
    programs()
    for needed in (JAR, AGENT):
        if not needed.exists():
            pytest.skip(f"{needed.name} is not built or installed")
    (folder / "plan.toml").write_text(plan())
    result = folder / "result"
    done = in_process.tare("run", folder / "plan.toml", "--out", result)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((result / "manifest.json").read_text())
    (run,) = [run for run in manifest["runs"] if run["condition"] == "traced"]
    assert run["valid"], run
    assert (run["requests"], run["errors"]) == (ORDERS, 0)
    found = run["collected"]
    # Each order has all spans; so has each question whether the services are ready.
    assert found["received"] >= ORDERS * TREE.count("\n")
    assert found["stored"] == found["queued"] == found["received"]
    assert (found["missing"], found["additional"], found["different"]) == (0, 0, 0)
    assert not [line for line in manifest["warnings"] if "incomplete" in line]

    rows = pq.read_table(result / "samples/condition=traced", partitioning=None)
    spans = [row for row in rows.to_pylist() if row["source"] == "span"]
    by_trace = Counter(row["trace_id"] for row in spans)
    assert len(by_trace) == ORDERS
    assert {*by_trace.values()} == {TREE.count("\n")}
    assert Counter(row["span"] for row in spans) == {
        line.strip(): ORDERS * number
        for line, number in Counter(map(str.strip, TREE.splitlines())).items()
    }
