# SPDX-License-Identifier: Apache-2.0
import os
from pathlib import Path

import pytest

from tare.lab import neighbours


def test_runs_see_each_other_and_remove_what_the_dead_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "runtime_folder", lambda: tmp_path)
    dead = tmp_path / "run-4000000.lock"
    dead.touch()
    with neighbours.announced() as mark:
        assert mark == tmp_path / f"run-{os.getpid()}.lock"
        assert neighbours.others(mark) == []
        assert not dead.exists()
        assert neighbours.others(tmp_path / "run-1.lock") == [os.getpid()]
    assert list(tmp_path.iterdir()) == []


def test_without_a_runtime_directory_an_experiment_runs_unannounced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "runtime_folder", lambda: tmp_path / "no" / "folder")
    with neighbours.announced() as mark:
        assert mark is None
        assert neighbours.others(mark) == []
