# SPDX-License-Identifier: Apache-2.0
"""What is kept of one experiment of the series."""

import json
import subprocess
from pathlib import Path

import pytest
from bench.verdict import real_peers
from tests.soak import alike

COMPARISON = {
    "role": "primary",
    "verdict": "unchanged",
    "effect": {"relative": 0.001},
    "mde": 0.01,
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
