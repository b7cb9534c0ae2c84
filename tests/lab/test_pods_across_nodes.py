# SPDX-License-Identifier: Apache-2.0
"""`tare run` with service and load generator on two nodes of a cluster."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.lab.conftest import NGINX_CONF, Experiment
from tests.lab.leftovers import of_cluster
from tests.lab.made import making
from tests.rights import may_use_cluster
from tests.waiting import wait_for

from tare.lab.environments.environment import Program
from tare.lab.environments.launch import RunError
from tare.lab.environments.pods_across_nodes import PodsAcrossNodes
from tare.lab.processes.processes import Processes
from tare.lab.recommendations.pods import read

IMAGE = "docker.io/library/nginx:1.27"
"""Of nginx, a shell, tar and glibc."""
TABLE = f'{{ type = "pods-across-nodes", image = "{IMAGE}" }}'
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not may_use_cluster(), reason="a cluster behind kubectl needs two nodes"),
]
Make = Callable[..., PodsAcrossNodes]


@pytest.fixture
def make(processes: Processes) -> Iterator[Make]:
    """Makes the environment with some settings."""
    with making(PodsAcrossNodes, "pods-across-nodes", processes) as make:
        yield lambda **settings: make(**{"image": IMAGE, **settings})


def test_service_and_load_are_on_different_nodes(make: Make) -> None:
    pods = make()
    assert pods.exec(["echo", "up"]) == pods.exec_at_load(["echo", "up"])
    found = read(pods.manifest())
    assert not isinstance(found, str)
    assert len({pod.nodes for pod in found}) == 2
    pods.stop()
    wait_for(lambda: not of_cluster(os.getpid()))


def test_signals_that_a_program_ignores_by_default_reach_it(
    make: Make, processes: Processes, tmp_path: Path
) -> None:
    pods, folder = make(), tmp_path / "run"
    folder.mkdir()
    pods.copy_in([folder])
    script = 'trap "echo got >got; exit 3" INT; echo up; while :; do sleep 0.01; done'
    log = tmp_path / "log"
    program = Program("service", ["sh", "-c", script], folder, log, [0], stop_signal="INT")
    process = pods.start(program)
    while "up" not in log.read_text():
        processes.wait(0.02)
    processes.stop([process])
    assert process.code == 3
    assert log.read_text() == "up\n"
    pods.copy_out([folder])
    assert (folder / "got").read_text() == "got\n"


def test_what_the_cluster_complains_of_is_one_line(make: Make) -> None:
    pods = make(image="localhost/tare-has-no-such-image:1")
    with pytest.raises(RunError, match=r"the pods did not start: pod tare-.*-service") as raised:
        pods.exec(["true"])
    assert "\n" not in str(raised.value)


def test_hook_and_proxy_work_across_nodes(experiment: Experiment) -> None:
    experiment.write_plan_of_layers(f"[{TABLE}]")
    done = experiment.measure(blocks=1)
    assert done.returncode == 0, done.stderr
    for run in experiment.manifest["runs"]:
        if "more0" not in run["condition"]:  # no memory is shared by two nodes
            assert run["reason"] is None
        assert run["cpu"]["generator_ns_per_request"] > 0
    wait_for(lambda: not of_cluster(os.getpid()))


def test_kill_9_of_the_service_is_the_reason_of_its_run(experiment: Experiment) -> None:
    loaded = 'until [ "$(wc -l <access.log)" -gt 20 ]; do sleep 0.02; done'
    command = f"""["sh", "-c", '({loaded}; kill -9 $$) & exec "$@"', "sh"]"""
    experiment.write_plan(
        top=f"environments = [{TABLE}]",
        load='warmup = "50ms"\nduration = "2s"',
        layers=f'{{ type = "wrap", command = {command} }}',
        nginx=NGINX_CONF.replace("access_log off;", "access_log access.log;"),
    )
    done = experiment.measure(blocks=1)
    assert done.returncode == 0, done.stderr
    (run,) = experiment.runs("two")
    assert "exited with code 137 during the load" in run["reason"]
