# SPDX-License-Identifier: Apache-2.0
"""What is kept of one experiment of the series."""

import json
import subprocess
from pathlib import Path

import pytest
from bench.verdict import peers, real_peers
from tests.soak import alike

COMPARISON = {
    "role": "primary",
    "verdict": "unchanged",
    "effect": {"relative": 0.001},
    "interval": {"low": -0.01, "high": 0.01},
    "budget": 0.03,
}


def test_peers_judge_the_result_before_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judged(folder: Path) -> dict[str, int]:
        assert folder == tmp_path / "3"
        return {"pooled t": 1}

    told = json.dumps({"comparisons": [COMPARISON], "controls": []}).encode()
    done = subprocess.CompletedProcess([], 0, told)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    monkeypatch.setattr(alike, "commit", lambda: "abc")
    monkeypatch.setattr(real_peers, "judged", judged)
    line = alike._try(3, tmp_path / "plan.toml", tmp_path)
    assert line["peers"] == {"pooled t": 1}
    assert "Tare 0, pooled t 1." in alike._told([line])


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
