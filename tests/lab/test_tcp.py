# SPDX-License-Identifier: Apache-2.0
"""Plans whose load is bytes over TCP, on a real Redis."""

import shutil

import pyarrow.parquet as pq
import pytest
from tests.lab.conftest import Experiment

PLAN = """\
name = "tcp"
budget = "5%"
blocks = 1
smoke = true
seed = 1

[service]
command = "redis-server --bind {address} --port {port} --save '' --dir {dir}"

[load]
type = "tcp"
warmup = "50ms"
duration = "300ms"
LOAD

[[conditions]]
name = "one"

[[conditions]]
name = "two"
"""


@pytest.fixture
def tcp(experiment: Experiment) -> Experiment:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    return experiment


@pytest.mark.parametrize(
    "load",
    [
        "send = 'GET key\\r\\n'\nreply = 'resp'\nusers = 4\npipeline = 8",
        'send = "PING\\r\\n"\nreply_bytes = 7',
        'send_file = "request"\nreply_until = "\\r\\n"\nmode = "open"\nrate = 1000',
    ],
)
def test_a_load_over_tcp(tcp: Experiment, load: str) -> None:
    (tcp.folder / "request").write_bytes(b"PING\r\n")
    tcp.plan.write_text(PLAN.replace("LOAD", load))
    done = tcp.measure()
    assert done.returncode == 0, done.stderr
    assert [run["reason"] for run in tcp.manifest["runs"]] == [None] * 3
    assert all(run["requests"] > 0 and run["errors"] == 0 for run in tcp.manifest["runs"])
    assert tcp.manifest["design"] == "interleaved"


@pytest.mark.exhaustive
def test_a_rate_that_is_a_share_of_the_capacity(tcp: Experiment) -> None:
    load = "send = 'PING\\r\\n'\nreply = 'resp'\nmode = 'open'\nrate = '20% of capacity'"
    tcp.plan.write_text(PLAN.replace("LOAD", load))
    done = tcp.measure()
    assert done.returncode == 0, done.stderr
    assert tcp.manifest["load"]["capacity"]["rate"] > tcp.manifest["load"]["rate"] > 0


def test_requests_that_fail_make_their_runs_invalid(tcp: Experiment) -> None:
    tcp.plan.write_text(PLAN.replace("LOAD", "send = 'NONSENSE\\r\\n'\nreply = 'resp'"))
    done = tcp.measure()
    assert done.returncode == 1
    reasons = [run["reason"] for run in tcp.manifest["runs"]]
    wanted = (
        "100.00% of the requests failed, above the limit of 1.00%; most often: the replies are"
        " errors; check send"
    )
    assert reasons == [wanted] * 3


def test_a_request_file_that_is_not_there_is_said_before_anything_starts(tcp: Experiment) -> None:
    tcp.plan.write_text(PLAN.replace("LOAD", "send_file = 'none'\nreply = 'resp'"))
    done = tcp.run("--dry-run")
    assert done.returncode == 2
    assert 'plan.toml:14: load.send_file: found "none", expected a file: ' in done.stderr


def test_a_linked_service_beside_one_over_tcp(tcp: Experiment) -> None:
    """One generator has linked connections and plain ones."""
    load = "send = 'PING\\r\\n'\nreply = 'resp'"
    plan = PLAN.replace("LOAD", load) + 'layers = [{ type = "link" }]\n'
    tcp.plan.write_text(plan)
    done = tcp.measure()
    assert done.returncode == 0, done.stderr
    assert [run["reason"] for run in tcp.manifest["runs"]] == [None] * 3
    (run,) = tcp.runs("two")
    file = f"costs/condition=two/block=1/run={run['run']}/costs.parquet"
    rows = pq.read_table(tcp.result / file, partitioning=None).to_pylist()
    counts = {row["metric"]: row["count"] for row in rows}
    assert (counts["programs"], counts["links"]) == (1, 1)
    assert counts["ring_bytes_received"] >= 0.9 * len("PING\r\n") * run["requests"]


def test_link_that_no_connection_used_is_a_reason(tcp: Experiment) -> None:
    load = "send = 'PING\\r\\n'\nreply = 'resp'\nconnection = 'per-request'"
    tcp.plan.write_text(PLAN.replace("LOAD", load) + 'layers = [{ type = "link" }]\n')
    tcp.measure()
    reasons = [run["reason"] for run in tcp.runs("two")]
    assert "no connection of the service or proxy used shared memory" in str(reasons)
