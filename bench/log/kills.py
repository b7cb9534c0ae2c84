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
            f"kills-{one['killed']}",
            f"tare, {one['killed']} killed",
            "",
            "times",
            [one["times"]],
            note=f"{one['kept']:,} events kept, {one['lost']:,} counted as lost, no other is"
            f" missing ({one['date']}, commit {one['commit']})",
        )
        for one in done
    ]
