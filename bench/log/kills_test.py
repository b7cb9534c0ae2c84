# SPDX-License-Identifier: Apache-2.0
import json
from pathlib import Path

import pytest
from bench.cases import read_bars
from bench.log import kills
from tests.soak import log


def test_the_last_series_is_held_against_the_bars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kills, "FOUND", tmp_path / "log.jsonl")
    with pytest.raises(SystemExit, match=r"log\.jsonl: not there; python -m tests\.soak log"):
        kills.cases()
    monkeypatch.setattr(log, "compile_program", lambda *_: Path())
    monkeypatch.setattr(log, "kill_target", lambda *_: 5)
    monkeypatch.setattr(log, "kill_collector", lambda *_: (3, 1))
    monkeypatch.setattr(log, "renew", lambda *_: None)
    log.run(200)
    lines = [json.loads(line) for line in kills.FOUND.read_text().splitlines()]
    assert [(series["kept"], series["lost"]) for series in lines] == [(1000, 0), (150, 50)]
    bars = read_bars("log")
    assert [bars[case.name].met(case) for case in kills.cases()] == [True, True]
    log.run(196)
    assert [bars[case.name].met(case) for case in kills.cases()] == [False, False]
