# SPDX-License-Identifier: Apache-2.0
"""What is kept of one experiment of the series."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from bench.verdict import peers
from bench.verdict.real_peers_test import written
from tests.soak import alike

COMPARISON = {
    "role": "primary",
    "verdict": "unchanged",
    "effect": {"relative": 0.001},
    "interval": {"low": -0.01, "high": 0.01},
    "budget": 0.03,
}


def test_peers_judge_the_requests_of_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In place of `tare run`, the test writes a result whose condition is slower by a half."""
    real, told = subprocess.run, json.dumps({"comparisons": [COMPARISON], "controls": []})

    def run(command: list[str], **options: Any) -> Any:
        if command[1:4] != ["-m", "tare", "run"]:
            return real(command, **options)
        written(Path(command[command.index("--out") + 1]), slower=1.5)
        return subprocess.CompletedProcess(command, 0, told.encode())

    monkeypatch.setattr(subprocess, "run", run)
    line = alike._try(3, tmp_path / "plan.toml", tmp_path)
    assert line["verdict"] == "unchanged"
    assert line["peers"].keys() >= {"pooled t", "hyperfine"}
    assert all(word == 1 for name, word in line["peers"].items() if name not in peers.TOOLS)
    assert "Tare 0, pooled t 1, " in alike._told([line])


def test_a_series_says_first_who_will_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(peers, "TOOLS", {"benchstat": (tmp_path / "none", peers.benchstat)})
    monkeypatch.setattr(alike, "ROOT", tmp_path)
    monkeypatch.setattr(alike, "FOUND", tmp_path / "alike.jsonl")
    monkeypatch.setattr(alike, "renew", lambda *_: None)
    monkeypatch.setattr(alike, "_told", lambda _: "")
    alike.run(0)
    assert "peers that will not judge: benchstat, not installed" in capsys.readouterr().err
