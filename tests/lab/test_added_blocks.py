# SPDX-License-Identifier: Apache-2.0
"""`tare run --resume FOLDER --blocks N`: more blocks of an experiment that was judged already."""

import json

import pytest
from tests.in_process import tare
from tests.lab.conftest import Experiment
from tests.lab.test_interruption import contents

from tare.lab.run.new_manifest import schedule
from tare.plan import load


def test_blocks_are_added_in_the_order_of_the_seed_and_looks_are_counted(
    experiment: Experiment,
) -> None:
    experiment.write_plan()
    first = experiment.run()
    assert first.returncode == 0, first.stderr
    begun, kept = experiment.manifest, contents(experiment.result)
    assert begun["looks"] == [2]
    assert "look at this experiment" not in first.stdout

    done = experiment.resume("--blocks", "4", "--json", report=True)
    assert done.returncode == 0, done.stderr
    manifest = experiment.manifest
    assert (manifest["blocks"], manifest["looks"]) == (4, [2, 4])
    assert manifest["runs"][:6] == begun["runs"]
    assert [run["run"] for run in manifest["runs"]] == list(range(1, 13))
    assert kept.items() <= contents(experiment.result).items()
    stored = load(experiment.result / "plan.toml")
    assert stored.blocks == 4
    order = [(part.block, list(part.compared)) for part in schedule(stored, begun["seed"])]
    assert [(part["block"], part["conditions"]) for part in manifest["order"]] == order
    judged = json.loads(done.stdout)
    assert judged["comparisons"][0]["runs"] == {"baseline": 4, "condition": 4}
    note = (
        "second look at this experiment (2, then 4 blocks): up to 8.3 % of experiments without an"
        " effect would raise a false alarm"
    )
    assert note in judged["warnings"]
    report = (experiment.result / "report.md").read_text().replace("\u00a0", " ")
    assert "second look at this experiment (2, then 4 blocks): up to 8.3 %" in report

    # To read it again is no further look.
    again = tare("compare", experiment.result, "--json")
    assert again.returncode == 0, again.stderr
    assert note in json.loads(again.stdout)["warnings"]
    assert experiment.resume("--blocks", "4").returncode == 0
    assert experiment.manifest["looks"] == [2, 4]

    refused = experiment.resume("--blocks", "3")
    assert (refused.returncode, refused.stderr) == (
        2,
        f"tare: --blocks 3: {experiment.result} is planned for 4; give a larger number\n",
    )


@pytest.mark.exhaustive
def test_an_experiment_that_was_not_finished_gets_more_blocks(experiment: Experiment) -> None:
    experiment.write_plan(top="control = false")
    assert experiment.measure(blocks=2).returncode == 0
    begun = experiment.manifest
    begun["runs"] = [run for run in begun["runs"] if run["block"] == 1]
    begun["finished"] = None
    (experiment.result / "manifest.json").write_text(json.dumps(begun))
    done = experiment.resume("--blocks", "3")
    assert done.returncode == 0, done.stderr
    assert "block 3 of 3" in done.stderr
    manifest = experiment.manifest
    assert [run["block"] for run in manifest["runs"]] == [1, 1, 2, 2, 3, 3]
    assert manifest["runs"][:2] == begun["runs"]
    assert manifest["looks"] == [3]
    assert manifest["finished"]


SECOND_START_FAILS = (
    "n=$(cat {plan}/starts 2>/dev/null || echo 0); echo $((n + 1)) >{plan}/starts;"
    ' [ "$n" != 1 ] || exit 3; exec "$@"'
)


def test_resuming_repeats_failed_runs_without_the_plan(experiment: Experiment) -> None:
    wrap = {"type": "wrap", "command": ["sh", "-c", SECOND_START_FAILS, "sh"]}
    layers = f"{{ type = {json.dumps(wrap['type'])}, command = {json.dumps(wrap['command'])} }}"
    experiment.write_plan(top="control = false", layers=layers)
    assert experiment.measure(blocks=2).returncode == 0
    assert [run["valid"] for run in experiment.manifest["runs"]].count(False) == 1
    done = tare("run", "--resume", experiment.result)
    assert done.returncode == 0, done.stderr
    assert "block 2 of 2" in done.stderr
    assert "block 1 of 2" not in done.stderr
    assert all(run["valid"] for run in experiment.manifest["runs"])
