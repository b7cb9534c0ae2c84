# SPDX-License-Identifier: Apache-2.0
"""Slices of a result that are left out, because something outside of it disturbed them."""

import json
from pathlib import Path
from shutil import rmtree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tare.samples import read_result
from tare.samples.read.result_test import SLICES, everywhere, write_result


def test_a_stolen_slice_leaves_out_its_round_and_the_one_before(tmp_path: Path) -> None:
    experiment = read_result(write_result(tmp_path, steal={(1, 10): 10e6}))
    # Slice 10 is plain's in round 5; rounds 4 and 5 of 20 go, for both conditions of block 1.
    assert [run.left_out for run in experiment.runs] == [0.1, 0.1, 0.0, 0.0]
    assert [run.requests for run in experiment.runs] == [90, 90, 100, 100]
    assert experiment.runs[0].summaries["p99"] == 100_000
    assert experiment.runs[0].answered == 90 - 18


def test_unusual_waiting_leaves_out_its_round_only(tmp_path: Path) -> None:
    experiment = read_result(write_result(tmp_path, wait={(2, 7): 1e6}))
    assert [run.left_out for run in experiment.runs] == [0.0, 0.0, 0.05, 0.05]
    assert experiment.runs[3].summaries["p99"] == 110_000


@pytest.mark.parametrize("others", [None, 0.0, 1e6])
def test_waiting_that_is_usual_is_no_disturbance(tmp_path: Path, others: float | None) -> None:
    experiment = read_result(write_result(tmp_path, wait=everywhere(2, 2e6), others=others))
    assert {(run.left_out, run.disturbed) for run in experiment.runs} == {(0.0, False)}


def test_usual_waiting_counts_while_other_tasks_run(tmp_path: Path) -> None:
    steady = read_result(write_result(tmp_path / "steady", wait=everywhere(2, 2e6), others=5e6))
    assert {(run.left_out, run.disturbed) for run in steady.runs} == {(0.5, True)}
    assert "p95, p99 and mean have no verdict" in " ".join(steady.warnings)
    third = {(1, number): 2e6 for number in range(SLICES) if number % 6 < 2}
    some = read_result(write_result(tmp_path / "some", wait=third, others=5e6))
    assert [run.left_out for run in some.runs] == [0.35, 0.35, 0.0, 0.0]
    assert not any(run.disturbed for run in some.runs)


def test_other_tasks_that_nobody_waits_for_do_not_count(tmp_path: Path) -> None:
    experiment = read_result(write_result(tmp_path, others=5e6))
    assert {(run.left_out, run.disturbed) for run in experiment.runs} == {(0.0, False)}


def test_runs_one_after_the_other_lose_their_own_slices(tmp_path: Path) -> None:
    experiment = read_result(write_result(tmp_path, design="blocks", wait={(1, 7): 1e6}))
    # Both runs of block 1 have a slice 7 that was hit; each is a round of its own.
    assert [run.left_out for run in experiment.runs] == [1 / 40, 1 / 40, 0.0, 0.0]


def test_in_turns_only_steal_leaves_slices_out(tmp_path: Path) -> None:
    waits = write_result(tmp_path / "waits", design="alternating", wait={(1, 7): 1e6})
    assert [run.left_out for run in read_result(waits).runs] == [0.0] * 4
    stolen = write_result(tmp_path / "stolen", design="alternating", steal={(1, 10): 10e6})
    # Slice 10 is in a turn of plain: slices 8 and 10 of its 20 go, and none of the other turns.
    assert [run.left_out for run in read_result(stolen).runs] == [0.1, 0.0, 0.0, 0.0]


def test_a_record_of_the_machine_that_is_gone_is_told(tmp_path: Path) -> None:
    folder = write_result(tmp_path, steal={(1, 8): 1e6})
    manifest = folder / "manifest.json"
    declared = json.loads(manifest.read_text()) | {"load": {"type": "tare"}}
    manifest.write_text(json.dumps(declared))
    said = "disturbed slices are not excluded"
    assert not any(said in line for line in read_result(folder).warnings)
    rmtree(folder / "machine")
    assert any(said in line for line in read_result(folder).warnings)


def test_no_more_than_half_is_ever_left_out(tmp_path: Path) -> None:
    stolen = {(1, number): 10e6 + number for number in range(SLICES)}
    experiment = read_result(write_result(tmp_path, steal=stolen))
    assert [run.left_out for run in experiment.runs] == [0.5, 0.5, 0.0, 0.0]
    assert any("in 1 of 2 blocks" in warning for warning in experiment.warnings)


FEW = frozenset(number for number in range(SLICES) if number % 8 < 2)
"""Slices of every fourth round."""


def test_waiting_in_slices_without_requests_is_no_level(tmp_path: Path) -> None:
    busy = {(block, number): 2e6 for block in (1, 2) for number in FEW}
    usual = read_result(write_result(tmp_path / "usual", wait=busy, used=FEW))
    assert {(run.left_out, run.disturbed) for run in usual.runs} == {(0.0, False)}
    # Slice 2 has no request, slice 8 has some and waits more than the others.
    unusual = busy | {(1, 2): 4e6, (1, 8): 4e6}
    some = read_result(write_result(tmp_path / "some", wait=unusual, used=FEW))
    assert [run.left_out for run in some.runs] == [0.2, 0.2, 0.0, 0.0]


def test_half_of_the_rounds_with_requests_stays(tmp_path: Path) -> None:
    # Only rounds with requests were hit; of all rounds that is less than half.
    stolen = {(1, number): 10e6 + number for number in FEW}
    experiment = read_result(write_result(tmp_path, steal=stolen, used=FEW))
    assert [run.left_out for run in experiment.runs] == [0.4, 0.4, 0.0, 0.0]
    assert [run.disturbed for run in experiment.runs] == [True, True, False, False]


def test_what_is_left_out_does_not_depend_on_latencies(tmp_path: Path) -> None:
    """The same readings with other latencies leave out the same slices."""
    steal = {(1, 10): 10e6, (2, 30): 10e6}
    shares = []
    for name, scale in (("a", 1), ("b", 1000)):
        folder = write_result(tmp_path / name, steal=steal)
        for path in folder.glob("samples/*/*/*/*.parquet"):
            table = pq.ParquetFile(path).read()
            slower = np.asarray(table["duration_ns"]) * scale
            pq.write_table(table.set_column(4, "duration_ns", pa.array(slower)), path)
        shares.append([run.left_out for run in read_result(folder).runs])
    assert shares[0] == shares[1]
