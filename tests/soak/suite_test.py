# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest
from tests.soak import suite
from tests.soak.suite import Run, busy, run_once, summary


def test_busy_processes_end_with_what_they_are_beside() -> None:
    with busy(2) as processes:
        assert [process.poll() for process in processes] == [None, None]
    assert [process.poll() for process in processes] == [-9, -9]


def test_a_run_counts_its_tests_and_names_those_that_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite, "PYTEST", suite.PYTEST[:4])
    (tmp_path / "test_three.py").write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): assert False\n"
        "def test_left_out(): pytest.skip()\n"
    )
    found = run_once(1, [str(tmp_path)])
    assert (found.hogs, found.code, found.tests, found.skipped) == (1, 1, 3, 1)
    (name,) = found.failed
    assert name.endswith("test_three::test_bad")
    text = summary([found])
    assert "Passed: 0 of 1" in text
    assert f"- 1 processes: {name} failed" in text


def test_a_run_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "LIMIT_S", 0.5)
    (tmp_path / "test_endless.py").write_text("def test_endless():\n    while True: pass\n")
    ended = run_once(0, [str(tmp_path)])
    assert (ended.hogs, ended.code, ended.tests) == (0, -9, 0)


def test_a_series_has_each_number_in_turn_and_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sections: list[tuple[str, ...]] = []
    monkeypatch.setattr(suite, "FOUND", tmp_path / "suite.jsonl")
    monkeypatch.setattr(suite, "renew", lambda *words: sections.append(words))
    monkeypatch.setattr(suite, "run_once", lambda hogs, _: Run(hogs, int(hogs == 4), tests=9))
    suite.run(2)
    with pytest.raises(SystemExit, match="a run failed"):
        suite.run(3)
    _, _, command, text = sections[-1]
    assert command == "python -m tests.soak suite --runs 3"
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]
    assert [row[1] for row in rows] == ["0", "2", "4", "0", "2"]
    assert "Passed: 4 of 5 (wanted: all)." in text
    suite.run(1, ["tests/compare"])
    assert len(sections) == 5
    assert len(suite.kept()) == 5
