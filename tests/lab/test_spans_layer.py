# SPDX-License-Identifier: Apache-2.0
"""Spans of a service as samples of its runs, and which of them a change is in."""

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests import in_process
from tests.lab.conftest import Experiment
from tests.rights import may_run_containers, may_run_guests, may_run_pods

SERVICE = Path(__file__).with_name("traced_service.py")
SPANS = '{ type = "spans", service = "shop" }'
PLAN = """\
name = "spans"
budget = "3%"
blocks = 2
smoke = true
environments = [{environment}]
[service]
command = ["{python}", "{service}", "{{address}}", "{{port}}"]
ready = {{ http = "/" }}
[load]
warmup = "100ms"
duration = "500ms"
[[conditions]]
name = "old"
layers = [{layers}]
[[conditions]]
name = "new"
layers = [{{ type = "env", variables = {{ PAY_MS = "3" }} }}, {layers}]
"""


def plan(layers: str, environment: str = "'host'") -> str:
    """Two versions of the service with the same layers."""
    return PLAN.format(
        python=sys.executable, service=SERVICE, layers=layers, environment=environment
    )


def test_spans_are_samples_and_name_the_change(experiment: Experiment) -> None:
    experiment.plan.write_text(plan(SPANS))
    done = experiment.run("--json", report=True)
    assert done.returncode == 0, done.stderr
    (run, *_) = experiment.runs("old")
    assert run["valid"], run
    file = f"samples/condition=old/block={run['block']}/run={run['run']}/samples.parquet"
    rows = pq.read_table(experiment.result / file, partitioning=None).to_pylist()
    requests = [row for row in rows if row["source"] == "client"]
    roots = [row for row in rows if row["span"] == "shop: GET / (server)"]
    pays = [row for row in rows if row["span"] == "shop: pay"]
    assert len(requests) == run["requests"] > 1
    # Each request is a trace; the last one may be exported after the load has ended.
    assert 0 <= len(requests) - len(roots) <= 1
    assert len(pays) == len(roots)
    assert min(row["start_ns"] for row in roots) >= min(row["start_ns"] for row in requests)
    assert {row["parent_id"] for row in pays} == {row["span_id"] for row in roots}

    found = json.loads(done.stdout)
    compared = {comparison["span"] for comparison in found["comparisons"]}
    assert compared == {"request", "shop: GET / (server)", "shop: pay"}
    (traces,) = found["traces"]
    parts = {part["span"]: part["critical_ns"] for part in traces["parts"]}
    assert parts["shop: pay"]["difference"] == pytest.approx(2e6)
    assert parts["shop: GET / (server)"]["difference"] == pytest.approx(0)
    assert traces["structures"]["verdict"] == "inconclusive"
    page = (experiment.result / "report.html").read_text()
    assert "Time on the critical path per request: new, shop: GET / (server)" in page
    again = in_process.tare("compare", experiment.result, "--json")
    assert json.loads(again.stdout)["traces"] == found["traces"]


def test_a_service_that_exports_nothing_is_no_run(experiment: Experiment) -> None:
    unset = '{ type = "wrap", command = ["env", "-u", "OTEL_EXPORTER_OTLP_ENDPOINT"] }'
    experiment.plan.write_text(plan(f"{unset}, {SPANS}"))
    experiment.measure(blocks=1)
    (run,) = experiment.runs("new")
    assert not run["valid"]
    assert run["reason"].startswith("no span was received")


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "environment",
    [
        "container",
        pytest.param("pod", marks=pytest.mark.integration),
        pytest.param("uml", marks=pytest.mark.integration),
    ],
)
def test_spans_come_out_of_other_environments(experiment: Experiment, environment: str) -> None:
    may_run = {"container": may_run_containers, "pod": may_run_pods, "uml": may_run_guests}
    if not may_run[environment]():
        pytest.skip(f"{environment}: needs root and its packages")
    table = "{ type = 'vm', machine = 'uml' }" if environment == "uml" else f"'{environment}'"
    experiment.plan.write_text(plan(SPANS, table))
    done = experiment.measure(blocks=1)
    assert done.returncode == 0, done.stderr
    for run in experiment.manifest["runs"]:
        assert run["valid"], run
    file = f"samples/**/run={experiment.runs('new')[0]['run']}/samples.parquet"
    (path,) = experiment.result.glob(file)
    spans = pq.read_table(path, partitioning=None, columns=["span"])["span"].to_pylist()
    assert spans.count("shop: pay") == spans.count("shop: GET / (server)") > 0
