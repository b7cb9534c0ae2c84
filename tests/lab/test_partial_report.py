# SPDX-License-Identifier: Apache-2.0
"""A report on what there is so far, while an experiment is not at its end."""

import json
import os
import signal
from pathlib import Path

import pytest
from tests.in_process import tare
from tests.lab.conftest import HOLD, Experiment
from tests.waiting import SECONDS

LOAD = 'warmup = "50ms"\nduration = "100ms"\n'


def judged_blocks(result: Path) -> set[int]:
    """The number of blocks of `tare report`; tails of runs that were disturbed have fewer."""
    done = tare("report", result, "--json")
    assert done.returncode == 0, done.stderr
    comparisons = json.loads(done.stdout)["comparisons"]
    return {
        comparison["runs"]["condition"]
        for comparison in comparisons
        if comparison["metric"] == "p50"
    }


@pytest.mark.exhaustive
def test_verdicts_on_fewer_runs_do_not_outlive_a_resume(experiment: Experiment) -> None:
    experiment.write_plan(load=LOAD, layers=HOLD)
    arguments = ["--out", str(experiment.result), "--blocks", "3"]
    for blocks in (1, 2):
        experiment.hold_after(1)
        process = experiment.start(*arguments)
        experiment.wait_until_held(process)
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=SECONDS)
        assert process.returncode == 130
        assert judged_blocks(experiment.result) == {blocks}
        arguments = ["--resume", str(experiment.result)]
