# SPDX-License-Identifier: Apache-2.0
import json
import multiprocessing
import os
import resource
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from tare.samples.describe.controls import NAME, remember, standing


@dataclass
class Outcome:
    environment: str = "host"
    p_adjusted: float = 0.5
    alarm: bool = False


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "tare" / NAME


def test_nothing_is_known_at_first(history: Path) -> None:
    assert standing() == (0, 0)
    assert not history.exists()


def test_every_environment_of_an_experiment_counts_once(history: Path) -> None:
    assert remember("a", [Outcome(), Outcome("netns", 0.001, alarm=True)]) is None
    assert standing() == (1, 2)
    assert remember("a", [Outcome("host", 0.002, alarm=True), Outcome("netns")]) is None
    assert standing() == (1, 2)
    assert remember("b", [Outcome()]) is None
    assert standing() == (1, 3)
    records = [json.loads(line) for line in history.read_text().splitlines()]
    assert [(r["experiment"], r["environment"], r["p"], r["alarm"]) for r in records] == [
        ("a", "host", 0.5, False),
        ("a", "netns", 0.001, True),
        ("b", "host", 0.5, False),
    ]
    assert all(record["time"].endswith("+00:00") for record in records)


def test_an_experiment_without_a_control_leaves_no_line(history: Path) -> None:
    assert remember("a", []) is None
    assert history.read_bytes() == b""


def test_lines_that_were_cut_short_or_are_of_others_do_not_count(history: Path) -> None:
    remember("a", [Outcome(alarm=True)])
    whole = history.read_bytes()
    others = b'[1]\n{"format": 2, "experiment": "c", "environment": "host", "alarm": true}\n'
    history.write_bytes(whole + others + b"\xff\n" + whole[:20])
    assert standing() == (1, 1)
    assert remember("b", [Outcome()]) is None
    assert standing() == (1, 2)
    assert history.read_bytes().startswith(whole + others)


def test_two_at_once_lose_nothing_and_count_once(history: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(2) as pool:
        assert pool.map(remember_all, [range(40), range(20, 60)], chunksize=1) == [0, 0]
    assert standing() == (20, 60)
    assert len(history.read_text().splitlines()) == 60


def remember_all(names: range) -> int:
    """Remembers experiments, every third of them with an alarm; returns how many it could not."""
    return sum(remember(str(name), [Outcome(alarm=name % 3 == 0)]) is not None for name in names)


def test_what_cannot_be_written_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "tare").write_text("a file")
    warning = remember("a", [Outcome()])
    assert warning == f"the control was not stored: {tmp_path}/tare: File exists"
    assert standing() == (0, 0)


def test_links_and_pipes_are_not_written_to(history: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    history.parent.mkdir()
    history.symlink_to(target)
    warning = remember("a", [Outcome()])
    assert warning == f"the control was not stored: {history}: is a symbolic link"
    assert target.read_text() == "precious"
    history.unlink()
    os.mkfifo(history)
    assert str(remember("a", [Outcome()])).endswith(f"{history}: is not an ordinary file")
    assert standing() == (0, 0)


def test_a_full_disk_is_a_warning_and_the_next_line_is_whole(history: Path) -> None:
    remember("a", [Outcome(alarm=True)])
    size = history.stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, limits[1]))
        assert "File too large" in str(remember("b", [Outcome()]))
        assert history.stat().st_size == size + 10
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert remember("d", [Outcome()]) is None
    assert standing() == (1, 2)
