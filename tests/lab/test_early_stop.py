# SPDX-License-Identifier: Apache-2.0
"""An experiment that fails from its start stops with one message, and can be finished."""

import json

import pytest
from tests.lab.conftest import Experiment

NEVER_READY = '{ type = "wrap", command = ["sh", "-c", "echo not today >&2; sleep 60", "sh"] }'


def broken(when: str) -> str:
    """A layer that ends at once while the shell says that `when` holds; $n counts its starts."""
    script = (
        'echo >>"$0/starts"; n=$(wc -l <"$0/starts"); '
        f"if {when}; then echo one; echo broken config; exit 3; fi >&2; "
        'shift; exec "$@"'
    )
    return f'{{ type = "wrap", command = {json.dumps(["sh", "-c", script, "{plan}", "{dir}"])} }}'


def give_baseline(experiment: Experiment, layer: str) -> None:
    """Puts a layer around the baseline, and so around the control."""
    text = experiment.plan.read_text()
    experiment.plan.write_text(text.replace('name = "one"', f'name = "one"\nlayers = [{layer}]'))


def test_a_baseline_that_is_never_ready_stops_after_the_first_block(
    experiment: Experiment,
) -> None:
    experiment.write_plan(patience="2s")
    give_baseline(experiment, NEVER_READY)
    done = experiment.run("--blocks", "8", "--fail-on", "invalid", "--json")
    assert (done.returncode, done.stdout) == (1, "")
    (message,) = (line for line in done.stderr.splitlines() if "not ready" in line)
    assert message.startswith("tare: the baseline 'one' failed in the first block: not ready with")
    log = experiment.result / "logs/block=1/one.log"
    assert f"; {log} ends with: not today; finished runs are kept; " in message
    runs = experiment.manifest["runs"]
    assert {run["block"] for run in runs} == {1}
    assert {run["condition"] for run in runs if run["valid"]} == {"two"}
    assert list((experiment.result / "samples/condition=two").rglob("*.parquet"))
    assert not (experiment.result / "report.html").exists()


@pytest.mark.parametrize("design", ["interleaved", "blocks"])
def test_a_condition_that_always_fails_stops_after_two_blocks(
    experiment: Experiment, design: str
) -> None:
    experiment.write_plan(top=f'design = "{design}"', layers=broken("true"))
    done = experiment.measure(blocks=4)
    assert done.returncode == 1
    log = experiment.result / "logs/block=2/two.log"
    assert done.stderr.splitlines()[-1].startswith(
        "tare: 'two' failed in the first two blocks: exited with code 3 before it was ready: broken"
        f" config; {log} ends with: one; finished runs are kept; "
    )
    assert [run["valid"] for run in experiment.runs("two")] == [False, False]
    assert all(run["valid"] for run in experiment.runs("one"))


def test_a_control_that_always_fails_stops_the_experiment(experiment: Experiment) -> None:
    experiment.write_plan()
    give_baseline(experiment, broken('test "${1%~again}" != "$1"'))
    done = experiment.measure(blocks=4)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("tare: the control failed in the first two blocks: exited with code 3")
    assert f"{experiment.result}/logs/block=2/one~again.log ends with: one; " in last
    assert [run["block"] for run in experiment.runs("two")] == [1, 2]


@pytest.mark.parametrize("block", [1, 3])
def test_one_failure_is_an_invalid_run_and_the_experiment_goes_on(
    experiment: Experiment, block: int
) -> None:
    experiment.write_plan(layers=broken(f"test $n = {block}"))
    done = experiment.measure(blocks=4)
    assert done.returncode == 0, done.stderr
    broken_runs = [run for run in experiment.runs("two") if "broken" in (run["reason"] or "")]
    assert [run["block"] for run in broken_runs] == [block]
    assert not broken_runs[0]["valid"]
    assert len(experiment.manifest["runs"]) == 12
    assert "invalid: two: exited with code 3 before it was ready: broken config" in done.stderr


@pytest.mark.exhaustive
def test_what_stopped_it_is_carried_out_again_by_resume(experiment: Experiment) -> None:
    experiment.write_plan(top='design = "blocks"', layers=broken('test ! -e "$0/mended"'))
    assert experiment.measure(blocks=3).returncode == 1
    begun = [run for run in experiment.manifest["runs"] if run["valid"]]
    assert begun
    (experiment.folder / "mended").touch()
    process = experiment.start("--resume", str(experiment.result), "--json")
    out, errors = process.communicate(timeout=90)
    assert process.returncode == 0, errors
    runs = experiment.manifest["runs"]
    assert [run["run"] for run in runs] == list(range(1, 10))
    assert all(run["valid"] for run in runs)
    assert all(run in runs for run in begun)
    (primary,) = [
        comparison
        for comparison in json.loads(out)["comparisons"]
        if comparison["role"] == "primary"
    ]
    assert primary["runs"] == {"baseline": 3, "condition": 3}
