# SPDX-License-Identifier: Apache-2.0
import json
import multiprocessing
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tare.errors import TareError
from tare.samples.describe.limits import Limit, detection_limits, remember

ONE = Limit(
    machine="m",
    service="serve 80",
    environment="host",
    span="request",
    statistic="p50",
    undetected_ns=100_000,
    level_ns=1.3e6,
    blocks=6,
    repetitions=10,
    shares={"0": 0.0, "100000": 0.9},
    date="2026-01-01T00:00:00+00:00",
    version="1.0",
)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "tare" / "calibration.json"


def test_what_is_remembered_holds_for_that_service_on_that_machine() -> None:
    assert detection_limits("m", "serve 80") == ([], ())
    alarming = replace(ONE, statistic="ks", undetected_ns=None)
    remember([ONE, alarming])
    assert detection_limits("m", "serve 80") == ([alarming, ONE], ())
    assert detection_limits("other", "serve 80") == ([], ())
    assert detection_limits("m", "serve 81") == ([], ())


def test_the_latest_takes_the_place_of_the_one_before_and_of_no_other() -> None:
    of_database, later = replace(ONE, span="db"), replace(ONE, undetected_ns=200_000)
    remember([ONE, of_database])
    remember([later])
    assert detection_limits("m", "serve 80") == ([of_database, later], ())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"format": 2, "limits": []}',
        '{"format": 1, "limits": [{}]}',
        json.dumps({"format": 1, "limits": [vars(ONE) | {"undetected_ns": "100"}]}),
        json.dumps({"format": 1, "limits": [vars(ONE) | {"undetected_ns": -1}]}),
        json.dumps({"format": 1, "limits": [vars(ONE) | {"span": 3}]}),
    ],
)
def test_a_damaged_file_is_one_warning_and_no_limit_and_is_set_aside(
    text: str, state: Path
) -> None:
    state.parent.mkdir()
    state.write_text(text)
    found, (warning,) = detection_limits("m", "serve 80")
    assert found == []
    assert warning.startswith(f"{state}: ")
    assert "\n" not in warning
    remember([ONE])
    assert state.with_suffix(".damaged").read_text() == text
    assert detection_limits("m", "serve 80") == ([ONE], ())


def _remember_many(first: int) -> None:
    for number in range(first, first + 10):
        remember([replace(ONE, span=f"span {number}")])


def test_two_at_once_lose_nothing() -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_remember_many, args=(first,)) for first in (0, 10)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert len(detection_limits("m", "serve 80")[0]) == 20


def test_a_folder_that_cannot_be_written_to_is_named(state: Path) -> None:
    state.parent.write_text("no folder")
    with pytest.raises(TareError, match=rf"{state.parent}.*XDG_STATE_HOME"):
        remember([ONE])


def test_lock_is_no_link_and_is_never_emptied(state: Path, tmp_path: Path) -> None:
    target, lock = tmp_path / "target", state.with_suffix(".lock")
    target.write_text("precious")
    state.parent.mkdir()
    lock.symlink_to(target)
    with pytest.raises(TareError, match=rf"{lock}: is a symbolic link; the limits were not stored"):
        remember([ONE])
    assert target.read_text() == "precious"
    assert not state.exists()
    lock.unlink()
    lock.hardlink_to(target)
    remember([ONE])
    assert target.read_text() == "precious"


def test_a_user_without_a_home_has_no_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(Path, "home", homeless)
    found, (warning,) = detection_limits("m", "serve 80")
    assert found == []
    assert "home directory" in warning
    with pytest.raises(TareError, match="home directory"):
        remember([ONE])


def test_a_pipe_is_not_waited_for(state: Path) -> None:
    state.parent.mkdir()
    os.mkfifo(state)
    found, warnings = detection_limits("m", "serve 80")
    assert found == []
    assert warnings[0].startswith(f"{state}: cannot be understood")
