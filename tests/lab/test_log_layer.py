# SPDX-License-Identifier: Apache-2.0
"""The event log as a layer: alone, under the hook, and around a service that logs nothing."""

import re
import shutil
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.lab.conftest import Experiment
from tests.rights import may_run_containers, may_run_guests, may_run_pods, may_use_cluster

from tare.native import native

ROOT = Path(__file__).parents[2]
PLAN = ROOT / "plans" / "log-busy.toml"
EVENTS = 1000
IMAGE = "docker.io/library/nginx:1.27"
"""For a cluster: of a shell, tar and glibc."""


@pytest.fixture
def busy(experiment: Experiment) -> Experiment:
    """The ready-made plan, shortened, with the hook around the log in a condition more."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    program = experiment.folder / "busy"
    words = ["-O2", "-I", native("include", ""), "-o", str(program)]
    sources = [str(ROOT / "services" / "busy" / "busy.c"), native("lib", "libtare_log.a")]
    subprocess.run(["cc", *words, *sources], check=True)
    text = PLAN.read_text().replace("{plan}/../services/busy/target/busy", str(program))
    text = re.sub('duration = ".*"', 'duration = "500ms"', text)
    said = f"echo $TARE_LOG_CLOCK >{experiment.folder}/clock"
    experiment.plan.write_text(
        f"smoke = true\n{text}\n[[conditions]]\nname = 'hooked'\nlayers = ["
        f"{{ type = 'env', variables = {{ BUSY_LOG_EVENTS = '{EVENTS}' }} }},"
        f" {{ type = 'wrap', command = ['sh', '-c', '{said}; exec \"$@\"', 'sh'] }},"
        " { type = 'log', codec = 'lz4', workers = 1, clock = 'monotonic' }, { type = 'hook' }]\n"
    )
    return experiment


def counters(experiment: Experiment, condition: str) -> dict[tuple[str, str], int]:
    """What the layers of a condition's run counted, by layer and metric."""
    (run,) = experiment.runs(condition)
    assert run["valid"], run
    file = f"costs/condition={condition}/block=1/run={run['run']}/costs.parquet"
    rows = pq.read_table(experiment.result / file, partitioning=None).to_pylist()
    found: dict[tuple[str, str], int] = {}
    for row in rows:
        key = str(row["layer"]), str(row["metric"])
        found[key] = found.get(key, 0) + row["count"]
    return found


@pytest.mark.parametrize(
    "environment",
    [
        "host",
        "container",
        pytest.param("pod", marks=pytest.mark.integration),
        pytest.param("pods-across-nodes", marks=pytest.mark.integration),
        pytest.param("uml", marks=pytest.mark.integration),
    ],
)
def test_layers_say_what_they_cost_alone_and_together(busy: Experiment, environment: str) -> None:
    if environment == "container" and not may_run_containers():
        pytest.skip("containers need root and the package runc")
    if environment == "pod" and not may_run_pods():
        pytest.skip("pods need root and the packages podman and runc")
    if environment == "uml" and not may_run_guests():
        pytest.skip("guests need root and the package user-mode-linux")
    if environment == "pods-across-nodes" and not may_use_cluster():
        pytest.skip("a cluster behind kubectl needs two nodes")
    text = busy.plan.read_text()
    tables = {
        "uml": "{type = 'vm', machine = 'uml'}",
        "pods-across-nodes": f"{{type = 'pods-across-nodes', image = '{IMAGE}'}}",
    }
    table = tables.get(environment, f"'{environment}'")
    busy.plan.write_text(f"environments = [{table}]\n{text}")
    done = busy.measure(blocks=1)
    assert done.returncode == 0, done.stderr
    for condition in ("collected", "hooked"):
        found = counters(busy, condition)
        (run,) = busy.runs(condition)
        kept = found["log", "events"] + found["log", "events_lost"]
        # Warm-up and readiness are requests, too.
        assert kept >= EVENTS * run["requests"]
        assert kept % EVENTS == 0
        assert found["log", "collector_cpu_ns"] > 0
        assert found["log", "bytes_written"] > 0
        assert (("hook", "calls_socket") in found) == (condition == "hooked")
    if environment in ("host", "uml"):  # In the others, the folder is read-only.
        assert (busy.folder / "clock").read_text() == "monotonic\n"


@pytest.mark.parametrize("order", [("hook", "link", "log"), ("log", "link", "hook")], ids=":".join)
def test_hook_link_and_log_work_together(busy: Experiment, order: tuple[str, ...]) -> None:
    layers = {
        "hook": "{ type = 'hook' }",
        "link": "{ type = 'link' }",
        "log": "{ type = 'log', codec = 'lz4', workers = 1 }",
    }
    variables = f"{{ type = 'env', variables = {{ BUSY_LOG_EVENTS = '{EVENTS}' }} }}"
    around = ", ".join([variables, *(layers[name] for name in order)])
    text, _, _ = busy.plan.read_text().rpartition("[[conditions]]")
    busy.plan.write_text(f"{text}[[conditions]]\nname = 'all'\nlayers = [{around}]\n")
    done = busy.measure(blocks=1)
    assert done.returncode == 0, done.stderr
    found = counters(busy, "all")
    (run,) = busy.runs("all")
    kept = found["log", "events"] + found["log", "events_lost"]
    assert kept >= EVENTS * run["requests"]
    assert found["hook", "calls_socket"] > 0
    assert found["link", "links"] > 0
    assert found["link", "reset"] == 0
    # All answers but the first of each connection.
    assert found["link", "ring_sends"] >= run["requests"] - 10 * found["link", "links"]


def test_a_service_that_does_not_log_is_no_run(experiment: Experiment) -> None:
    experiment.write_plan(layers='{ type = "log" }')
    done = experiment.measure(blocks=1)
    assert done.returncode == 0, done.stderr
    (run,) = experiment.runs("two")
    assert not run["valid"]
    assert run["reason"].startswith("no program logged events")
