# SPDX-License-Identifier: Apache-2.0
"""The ten recommendations around real runs: in the manifest, on the terminal, and in the report."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.in_process import tare
from tests.lab.conftest import Experiment
from tests.rights import may_run_containers
from tests.waiting import wait_for

from tare.lab.recommendations.observations import RunObservations
from tare.lab.recommendations.other_programs import between, cpu_times
from tare.lab.recommendations.tenancy import judge
from tare.plan import parse

STATED = """
kind = "both"
recommendations = { typical_use = "reads requests from sockets", mesh = "there is none" }
"""
# Enters the control group, works until it was throttled three times, and writes two requests.
STARVED = """
echo 0 > "$0/cgroup.procs"
while [ "$(sed -n 's/^nr_throttled //p' "$0/cpu.stat")" -lt 3 ]; do :; done
printf 'start_time,response_time\\n1,1\\n2,1\\n' > "$1"
"""


def answers(run: dict[str, object]) -> dict[int, str]:
    found = run["recommendations"]
    assert isinstance(found, list)
    return {recommendation["number"]: recommendation["answer"] for recommendation in found}


def test_every_run_and_the_plan_answer_their_recommendations(experiment: Experiment) -> None:
    experiment.write_plan(top=STATED, layers='{ type = "hook" }')
    done = experiment.run("--blocks", "1", report=True)
    assert done.returncode == 0, done.stderr
    assert answers(experiment.manifest) == {5: "kept", 6: "kept", 10: "broken"}
    for run in experiment.manifest["runs"]:
        found = answers(run)
        # Processes of one host are in no containers; what else runs here is not for this test.
        assert found.pop(1) == "broken"
        assert found.pop(4) in ("kept", "broken")
        # Another test may make the memory of the machine scarce.
        assert found.pop(8) == ("kept" if run["valid"] else "broken")
        with_hook = {7: "kept"} if run["condition"] == "two" else {}
        assert found == {2: "kept", 3: "kept", **with_hook}
    assert "recommendations: " not in done.stdout, "a smoke run does not print them"
    answer = tare("report", experiment.result).stderr
    assert "broken: 10. There are several different environments: the plan has one" in answer
    assert "broken: 9. There are enough runs for how much they vary: two" in answer
    page = (experiment.result / "report.html").read_text()
    assert 'id="recommendations"' in page
    assert "Times are taken near to the hook" in (experiment.result / "report.md").read_text()


def test_only_recommendation_3_cannot_be_told_without_manifest_and_statement(
    experiment: Experiment,
) -> None:
    experiment.write_plan()
    assert experiment.measure(blocks=1).returncode == 0
    unknown = {
        number
        for judged in (experiment.manifest, *experiment.manifest["runs"])
        for number, answer in answers(judged).items()
        if answer == "cannot tell"
    }
    assert unknown == {3}


def test_a_neighbour_that_keeps_a_cpu_busy_breaks_recommendation_4(experiment: Experiment) -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as neighbour:
        try:
            before, begin = cpu_times(), ticks(neighbour.pid)
            wait_for(lambda: ticks(neighbour.pid) >= begin + 50)
            after = cpu_times()
        finally:
            neighbour.kill()
    mine, both = {os.getpid()}, {os.getpid(), neighbour.pid}
    found, without = between(before, after, mine, mine), between(before, after, both, both)
    assert found.cpus * (after.at_s - before.at_s) * os.sysconf("SC_CLK_TCK") > 49
    assert without.cpus < found.cpus
    experiment.write_plan()
    plan = parse(experiment.plan.read_text(), "plan.toml", experiment.folder)
    result = judge(RunObservations(plan=plan, condition=plan.conditions[0], others=found))
    assert result is not None
    # If it had less than a tenth of a CPU, other programs or virtual machines had the rest.
    assert result.status == "broken"


def ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13]))


@pytest.mark.exhaustive
@pytest.mark.skipif(not may_run_containers(), reason="containers need root and the package runc")
def test_a_container_on_the_network_of_the_host_is_like_a_pod(experiment: Experiment) -> None:
    bridge = '{ type = "container", name = "far", network = "bridge" }'
    experiment.write_plan(top=f'environments = ["container", {bridge}]')
    assert experiment.measure(blocks=1).returncode == 0
    found = {run["environment"]: answers(run)[1] for run in experiment.manifest["runs"]}
    assert found == {"container": "kept", "far": "broken"}
    assert answers(experiment.manifest)[10] == "kept"


def test_a_generator_that_is_starved_of_cpu_makes_runs_invalid(
    experiment: Experiment, quota: Path
) -> None:
    words = json.dumps(["sh", "-c", STARVED, str(quota), "{output}"])
    experiment.write_plan(
        load=f'type = "command"\ncommand = {words}\noutput = "a.csv"\nformat = "locust"\n'
        'duration = "1s"\n'
    )
    done = experiment.measure(blocks=1)
    (run,) = experiment.manifest["runs"]
    assert not run["valid"]
    assert "the load generator was throttled for" in run["reason"]
    (limits,) = (answer for answer in run["recommendations"] if answer["number"] == 8)
    assert (limits["answer"], limits["evidence"]) == ("broken", [run["reason"]])
    # Without its baseline, the experiment has nothing to compare.
    assert (done.returncode, run["reason"] in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("manifest", "error"),
    [
        ("kind: Pod\nspec: [", "line 2: "),
        ("kind: Service", "with 1 to 1000 pods"),
        (None, "No such file or directory"),
    ],
)
def test_a_manifest_that_is_none_is_refused_in_one_line(
    manifest: str | None, error: str, experiment: Experiment
) -> None:
    experiment.write_plan(top='recommendations = { manifests = ["pod.yaml"] }')
    if manifest is not None:
        (experiment.folder / "pod.yaml").write_text(manifest)
    done = experiment.measure(blocks=1)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "recommendations.manifests" in line
    assert error in line


def test_tare_report_prints_the_answers(experiment: Experiment) -> None:
    experiment.write_plan()
    assert experiment.measure(blocks=1).returncode == 0
    done = tare("report", experiment.result, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["recommendations"]
    # Without a hook, no run leaves the seventh to another.
    assert [recommendation["number"] for recommendation in found] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    done = tare("report", experiment.result)
    assert done.stdout == f"{experiment.result / 'report.html'}\n"
    assert done.stderr.startswith("recommendations: ")
