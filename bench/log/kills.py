# SPDX-License-Identifier: Apache-2.0
"""kill -9 of programs that log and of their collector, as `make soak` left it."""

import json

from bench.cases import Case
from bench.results import ROOT

FOUND = ROOT / "tests" / "soak" / "log.jsonl"
"""One JSON object for each of the two that is killed; the series ends where an event is neither
kept nor counted as lost, and writes nothing."""


def cases() -> list[Case]:
    """How often each was killed. Raises SystemExit where there was no series."""
    if not FOUND.exists():
        raise SystemExit(f"{FOUND}: not there; python -m tests.soak log writes it")
    done = [json.loads(line) for line in FOUND.read_text().splitlines()]
    return [
        Case(
            f"kills-{series['killed']}",
            f"tare, {series['killed']} killed",
            "",
            "times",
            [series["times"]],
            note=f"{series['kept']:,} events kept, {series['lost']:,} counted as lost, no other is"
            f" missing ({series['date']}, commit {series['commit']})",
        )
        for series in done
    ]
