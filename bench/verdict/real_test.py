# SPDX-License-Identifier: Apache-2.0
"""What is read from the last series of real A/A experiments."""

import json
from pathlib import Path

import pytest
from bench.cases import read_bars
from bench.verdict import real


def found(words: dict[str, int], width: float | None = 0.02) -> list[dict[str, object]]:
    blank = {"date": "2026-01-01", "commit": "abc", "budget": 0.03, "width": width}
    return [blank | {"verdict": word} for word, count in words.items() for _ in range(count)]


def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *done: dict[str, object]) -> list[float]:
    file = tmp_path / "alike.jsonl"
    file.write_text("".join(json.dumps(experiment) + "\n" for experiment in done))
    monkeypatch.setattr(real, "FOUND", file)
    count, *alarms, unchanged = real.cases()
    bars = read_bars("verdict")
    assert unchanged.name in bars
    assert bars[count.name].met(count) is (len(done) >= 100)
    return [value for case in (*alarms, unchanged) for value in case.values]


def test_alarms_are_of_all_and_unchanged_of_those_that_could_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sharp = found({"unchanged": 6, "faster": 1, "inconclusive": 1})
    blind = [*found({"inconclusive": 1}, 0.035), *found({"shape-changed": 1}, None)]
    assert cases(tmp_path, monkeypatch, *sharp, *blind) == [20, 75]


def test_peers_stand_beside_it_for_the_experiments_that_they_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = found({"unchanged": 60})
    new = [
        experiment | {"peers": {"pooled t": (number < 20) - (number > 37), "hyperfine": 0}}
        for number, experiment in enumerate(found({"unchanged": 40}))
    ]
    # Tare, pooled t, hyperfine; unchanged.
    assert cases(tmp_path, monkeypatch, *old, *new) == [0, 55, 0, 100]
    text = real.table()
    assert "| Tare | 100 | 0 | 0.0 % | 0.0 to 3.6 % |" in text
    assert "| pooled t | 40 | 22 | 55.0 % | 38.5 to 70.7 % |" in text
    assert "Not in the table: benchstat and Otava, not installed" in text
    cases(tmp_path, monkeypatch, *old)
    assert "Not in the table: the peers" in real.table()


def test_the_series_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real, "FOUND", tmp_path / "none.jsonl")
    with pytest.raises(SystemExit, match=r"none\.jsonl: not there; python -m tests\.soak alike"):
        real.cases()
