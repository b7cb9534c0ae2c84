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
    assert run_once(0, [str(tmp_path)]) == Run(0, -9)


def test_a_series_has_each_number_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    sections: list[tuple[str, ...]] = []
    monkeypatch.setattr(suite, "renew", lambda *words: sections.append(words))
    monkeypatch.setattr(suite, "run_once", lambda hogs, _: Run(hogs, int(hogs == 4), tests=9))
    with pytest.raises(SystemExit, match="a run failed"):
        suite.run(5, ["tests/compare"])
    ((_, _, command, text),) = sections
    assert command == "python -m tests.soak suite --runs 5 --tests tests/compare"
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]
    assert [row[0] for row in rows] == ["| 0", "| 2", "| 4", "| 0", "| 2"]
    assert "Passed: 4 of 5 (wanted: all)." in text
