# SPDX-License-Identifier: Apache-2.0
"""What is measured of few requests is what is measured of many."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from bench.scale import measure as scale
from bench.scale.data import RUNS, as_result, write

from tare.samples import read_result
from tare.verdict import judge

REQUESTS = 40_000


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scale")
    write(folder, REQUESTS)
    return folder


def test_the_files_are_a_result(files: Path, tmp_path: Path) -> None:
    as_result(files, tmp_path)
    experiment = read_result(tmp_path)
    assert sum(run.requests for run in experiment.runs) == REQUESTS
    assert len(experiment.runs) == RUNS
    assert judge(experiment).comparisons[0].verdict == "slower"


def test_the_whole_command_has_its_time_and_its_memory(files: Path) -> None:
    seconds, memory = scale._whole_command("100m", files)
    assert (seconds.name, memory.name) == ("scale-100m-command", "scale-100m-command-memory")
    assert "slower" in seconds.note
    assert seconds.values[0] > 0
    assert 0.05 < memory.values[0] < 2


def test_files_that_are_read_ten_times_are_no_new_data(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scale.main("exact", str(files), "1")
    assert "read" not in json.loads(capsys.readouterr().out)["note"]
    scale.main("exact", str(files), "10")
    note = json.loads(capsys.readouterr().out)["note"]
    assert note.startswith("400,000 requests in 20 runs: slower; the files of 40,000 requests read")
    assert "10 times" in note


@pytest.mark.exhaustive
def test_what_the_bench_held_is_not_what_the_command_holds() -> None:
    np.ones(2**27).sum()
    done = subprocess.run(
        [sys.executable, "-c", scale.TARE, "--version"], check=True, capture_output=True, text=True
    )
    assert done.stdout.startswith("tare ")
    assert 0 < scale.peak(done.stderr) < 0.5
    assert scale.peak(Path("/proc/self/status").read_text()) >= 1
