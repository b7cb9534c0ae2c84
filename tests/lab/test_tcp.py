# SPDX-License-Identifier: Apache-2.0
"""Plans whose load is bytes over TCP, on a real Redis."""

import shutil

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
    assert (
        reasons
        == ["100.00% of the requests failed, above the limit of 1.00%; most frequent error: status"]
        * 3
    )


def test_a_request_file_that_is_not_there_is_said_before_anything_starts(tcp: Experiment) -> None:
    tcp.plan.write_text(PLAN.replace("LOAD", "send_file = 'none'\nreply = 'resp'"))
    done = tcp.run("--dry-run")
    assert done.returncode == 2
    assert 'plan.toml:14: load.send_file: found "none", expected a file: ' in done.stderr
