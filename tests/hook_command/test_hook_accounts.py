# SPDX-License-Identifier: Apache-2.0
"""Every match is a line of the file or counted as lost, however many there are."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.hook_command.service import HOOK, rules

SOURCE = Path(__file__).parents[2] / "bench" / "hook" / "matches.c"


@pytest.mark.parametrize("file", ["events.jsonl", "/dev/full"])
def test_matches_of_many_threads_are_written_or_lost(file: str, tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    program = tmp_path / "matches"
    subprocess.run([compiler, "-O2", "-pthread", "-o", program, SOURCE], check=True)
    (tmp_path / "rules.toml").write_text(rules("needle"))
    events = tmp_path / file
    options = ["--rules", str(tmp_path / "rules.toml"), "--events", str(events), "--json"]
    done = subprocess.run(
        [HOOK, *options, "--", program, "8", "1e6", "0.5"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    made = int(done.stdout.split()[0])
    stats = json.loads(done.stderr.splitlines()[-1])
    assert made > 400_000
    assert sum(function["matches"] for function in stats["functions"]) == made
    counts = stats["events"]
    assert counts["written"] + counts["lost"] == made
    if file == "/dev/full":
        assert counts["written"] == 0
        return
    times: dict[int, list[int]] = {}
    lines = events.read_bytes().splitlines()
    for line in lines:
        event = json.loads(line)
        assert event["keyword"] == "needle"
        times.setdefault(event["tid"], []).append(event["time_ns"])
    assert len(lines) == counts["written"] > 0
    # Of a thread. One that loses its CPU while it records an event may come late among others.
    assert all(mine == sorted(mine) for mine in times.values())
