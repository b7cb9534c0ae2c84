# SPDX-License-Identifier: Apache-2.0
"""`[collect]` of a plan starts real Jaeger, Kafka and Elasticsearch, and imports their spans."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests import in_process
from tests.peers.programs import BIN
from tests.rights import may_run_containers
from tests.waiting import SECONDS, wait_for

from tare.lab.machine import suspension
from tare.lab.pipeline.programs import INSTALLED_BY
from tare.lab.processes.supervisor import descendants

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1_800)]
SERVICE = Path(__file__).parents[1] / "lab" / "traced_service.py"
SPANS = '{ type = "spans", service = "shop" }'
LOSE = 10
HOST, CONTAINER = '"host"', '{ type = "container", network = "bridge" }'
PARTS = {*INSTALLED_BY} - {"kafka-storage.sh"}


def plan_of(environment: str, duration: str) -> str:
    """Two conditions whose services export spans; those of every tenth request are lost."""
    command = json.dumps([sys.executable, str(SERVICE), "{address}", "{port}"])
    return f"""\
name = "pipeline"
budget = "3%"
blocks = 1
smoke = true
control = false
environments = [{environment}]
[collect]
pipeline = "jaeger-kafka-elasticsearch"
programs = "{BIN}"
[service]
command = {command}
ready = {{ http = "/" }}
[load]
warmup = "100ms"
duration = "{duration}"
[[conditions]]
name = "whole"
layers = [{SPANS}]
[[conditions]]
name = "lossy"
layers = [{{ type = "env", variables = {{ LOSE = "{LOSE}" }} }}, {SPANS}]
"""


def require_pipeline() -> None:
    """Skips the test if a program is not installed."""
    for program, name in INSTALLED_BY.items():
        if not os.access(BIN / program, os.X_OK):
            pytest.skip(f"{program} is not in target/peers/bin: setup/install-peers {name}")
    pytest.importorskip("kafka", reason="kafka-python is not installed")


def write_plan(folder: Path, environment: str = HOST, duration: str = "2s") -> Path:
    require_pipeline()
    file = folder / "plan.toml"
    file.write_text(plan_of(environment, duration))
    return file


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_longer(monkeypatch)


def wait_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipeline needs the CPU for seconds, and a run without CPU does not count."""
    monkeypatch.setattr(suspension, "LONGEST_S", float(SECONDS))


@pytest.mark.parametrize("environment", [HOST, '"netns"', CONTAINER])
def test_spans_are_imported_from_elasticsearch_and_lost_spans_are_reported(
    tmp_path: Path, environment: str
) -> None:
    if environment != HOST and not may_run_containers():
        pytest.skip("only root can make network namespaces and containers, and needs runc")
    plan, result = write_plan(tmp_path, environment), tmp_path / "result"
    done = in_process.tare("run", plan, "--out", result)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((result / "manifest.json").read_text())
    runs = {run["condition"]: run for run in manifest["runs"]}
    assert all(run["valid"] for run in runs.values()), runs
    for name, run in runs.items():
        found = run["collected"]
        assert found["received"] > run["requests"]
        assert found["stored"] == found["queued"] == found["received"] - found["missing"]
        assert (found["additional"], found["different"]) == (0, 0)
        rows = rows_of(result, name, run)
        spans = [row for row in rows if row["source"] == "span"]
        # Jaeger stores whole microseconds.
        assert {row["duration_ns"] % 1_000 for row in spans} == {0}
        assert {row["span"] for row in spans} == {"shop: GET / (server)", "shop: pay"}
    assert runs["whole"]["collected"]["missing"] == 0
    lost = runs["lossy"]["collected"]
    # Each trace has two spans; readiness was asked for, too.
    assert lost["missing"] == lost["received"] // 2 // LOSE * 2 > 0
    (warning,) = [line for line in manifest["warnings"] if "incomplete" in line]
    assert "(lossy): jaeger-kafka-elasticsearch: incomplete: Elasticsearch lacks" in warning
    assert f"{lost['missing']:,} before Kafka" in warning
    assert environments_of(os.getpid()) == []


def rows_of(result: Path, condition: str, run: dict[str, Any]) -> list[dict[str, Any]]:
    folder = result / f"samples/condition={condition}/block={run['block']}/run={run['run']}"
    return list(pq.read_table(folder / "samples.parquet", partitioning=None).to_pylist())


def environments_of(owner: int) -> list[dict[str, Any]]:
    """What `tare ps` lists of a process."""
    done = in_process.tare("ps", "--json")
    return [one for one in json.loads(done.stdout)["environments"] if one["owner"] == owner]


@contextmanager
def running(plan: Path, result: Path) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "tare", "run", str(plan), "--out", str(result)]
    with (plan.parent / "printed").open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_killed_run_leaves_nothing_of_its_pipeline(tmp_path: Path) -> None:
    plan, result = write_plan(tmp_path, duration="1h"), tmp_path / "result"
    with running(plan, result) as process:

        def is_up() -> bool:
            assert process.poll() is None, (tmp_path / "printed").read_text()
            listed = {one["type"] for one in environments_of(process.pid)}
            return listed >= PARTS and all((result / "logs/block=1").glob("*+load.log"))

        wait_for(is_up, "all parts of the pipeline")
        pids = [process.pid, *descendants(process.pid)]
        folders = [
            Path(word)
            for pid in pids
            for word in Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
            if word.startswith("ES_PATH_CONF=")
        ]
        stores = {Path(str(folder).partition("=")[2]).parent for folder in folders}
        (store,) = stores
        assert store.is_dir()
        assert all(one["in_use"] for one in environments_of(process.pid))
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "ends")
        wait_for(lambda: not store.exists(), "is deleted")
    in_process.tare("clean")
    assert environments_of(process.pid) == []


def test_a_broken_pipeline_makes_the_run_invalid(tmp_path: Path) -> None:
    """Its collectors are killed during the load."""
    plan, result = write_plan(tmp_path, duration="5s"), tmp_path / "result"
    killed: list[int] = []

    def kill() -> None:
        wait_for(lambda: any((result / "logs/block=1").glob("*+load.log")), "the load")
        for pid in descendants(os.getpid()):
            if b"jaeger-collector" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    thread = Thread(target=kill)
    thread.start()
    done = in_process.tare("run", plan, "--out", result)
    thread.join()
    assert len(killed) == 2
    assert done.returncode == 1
    manifest = json.loads((result / "manifest.json").read_text())
    assert {run["reason"] for run in manifest["runs"]} == {
        "pipeline: jaeger-collector was killed by SIGKILL"
    }
    assert environments_of(os.getpid()) == []
