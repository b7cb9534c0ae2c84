# SPDX-License-Identifier: Apache-2.0
"""`compare = "environments"`: each condition in several environments, against a baseline there."""

import json

import pytest
from tests.in_process import tare
from tests.lab.conftest import Experiment
from tests.rights import may_make_namespaces

TWINS = '[{ type = "host" }, { type = "host", name = "twin" }]'
AROUND = '{ type = "env", variables = { A = "1" } }'


@pytest.mark.exhaustive
def test_environments_stand_side_by_side_with_each_condition(experiment: Experiment) -> None:
    top = f'compare = "environments"\nenvironments = {TWINS}'
    experiment.write_plan(top=top, layers=AROUND)
    planned = tare("run", experiment.plan, "--dry-run")
    assert "block 1 with " in planned.stdout, planned.stderr

    done = experiment.run("--json", report=True)
    assert done.returncode == 0, done.stderr
    manifest = experiment.manifest
    assert (manifest["compare"], manifest["design"]) == ("environments", "interleaved")
    assert (manifest["baseline"], manifest["control"]) == ("host", "host~again")
    for part in manifest["order"]:
        assert part["condition"] in ("one", "two")
        assert sorted(part["environments"]) == ["host", "host~again", "twin"]
    assert {(run["environment"], run["condition"]) for run in manifest["runs"]} == {
        (where, name) for where in ("host", "host~again", "twin") for name in ("one", "two")
    }

    judged = json.loads(done.stdout)
    assert judged["compare"] == "environments"
    compared = [
        comparison for comparison in judged["comparisons"] if comparison["role"] == "primary"
    ]
    assert [
        (comparison["condition"], comparison["environment"], comparison["baseline"])
        for comparison in compared
    ] == [
        ("one", "twin", "host"),
        ("two", "twin", "host"),
    ]
    assert sorted(control["condition"] for control in judged["controls"]) == ["one", "two"]
    again = tare("compare", experiment.result, "--json")
    assert json.loads(again.stdout)["comparisons"] == judged["comparisons"]
    read = tare("report", experiment.result, "--json")
    assert json.loads(read.stdout)["comparisons"] == judged["comparisons"]
    report = (experiment.result / "report.md").read_text()
    assert "twin, one" in report
    assert "twin, two" in report
    assert "host~again" not in report

    more = experiment.resume("--blocks", "3")
    assert more.returncode == 0, more.stderr
    assert [part["block"] for part in experiment.manifest["order"]] == [1, 1, 2, 2, 3, 3]


def test_a_namespace_is_compared_with_the_host(experiment: Experiment) -> None:
    if not may_make_namespaces():
        pytest.skip("this test needs root, to make a network namespace")
    experiment.write_plan(top='compare = "environments"\nenvironments = ["host", "netns"]')
    done = experiment.run()
    assert done.returncode == 0, done.stderr
    assert "netns, one against host" in done.stdout
    for run in experiment.manifest["runs"]:
        assert ("127.0.0.1" in run["endpoint"]) == (run["environment"] != "netns")


def test_an_environment_that_the_machine_lacks_is_skipped(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment.write_plan(top='environments = ["host", "container"]')
    monkeypatch.setattr("tare.lab.environments.container.find", lambda _: None)
    for words in (["--dry-run"], ["--out", str(experiment.result), "--blocks", "1"]):
        done = tare("run", experiment.plan, *words)
        assert done.returncode == 0, done.stderr
        assert "environment 'container' is skipped" in done.stdout + done.stderr
    assert experiment.manifest["environments"] == ["host"]
    assert any("'container' is skipped" in line for line in experiment.manifest["warnings"])
    # It goes on without it, whatever was installed meanwhile.
    monkeypatch.undo()
    more = experiment.resume("--blocks", "2")
    assert more.returncode == 0, more.stderr
    assert {run["environment"] for run in experiment.manifest["runs"]} == {"host"}


def test_the_baseline_is_an_environment(experiment: Experiment) -> None:
    top = f'compare = "environments"\nbaseline = "twin"\nenvironments = {TWINS}'
    experiment.write_plan(top=top)
    assert experiment.measure(blocks=1).returncode == 0
    assert experiment.manifest["baseline"] == "twin"
    experiment.write_plan(top=top.replace('"twin"', '"one"', 1))
    refused = tare("run", experiment.plan)
    assert refused.returncode == 2
    assert "expected a baseline that is one of the environments: host, twin" in refused.stderr


def test_results_of_different_kinds_are_not_compared(experiment: Experiment) -> None:
    experiment.write_plan(top=f'compare = "environments"\nenvironments = {TWINS}')
    assert experiment.measure(blocks=1).returncode == 0
    environments = experiment.result.rename(experiment.folder / "environments")
    experiment.write_plan()
    assert experiment.measure(blocks=1).returncode == 0
    refused = tare("compare", environments, experiment.result)
    assert refused.returncode == 2
    assert "compares environments, and" in refused.stderr
