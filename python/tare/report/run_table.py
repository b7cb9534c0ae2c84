# SPDX-License-Identifier: Apache-2.0
"""The table of runs: what every effect, and the control's, can be computed from again."""

from collections.abc import Sequence
from dataclasses import dataclass

from tare.report.result import Result
from tare.report.tables import where
from tare.report.words import count, duration, metric, percent, safe

RUNS = 400
"""Valid runs that the table shows; invalid ones always."""
DIGITS = 5
METRICS = ("p50", "p95", "p99", "mean", "cpu_service")
COLUMNS = (
    "run",
    "block",
    "condition",
    "valid",
    "how it went",
    *map(metric, METRICS),
    "requests",
    "errors",
    "counted",
    "left out",
)


@dataclass(frozen=True)
class Row:
    """One run; `reason` and `log` only where it is invalid."""

    valid: bool
    cells: Sequence[str]
    reason: str
    log: str


def rows(result: Result) -> tuple[Sequence[Row], int]:
    """Every invalid run, the first RUNS valid ones, and how many more there are."""
    known = {run.run: run for run in result.measured}
    found, more, shown = [], 0, 0
    for entry in result.runs:
        valid = bool(entry.get("valid"))
        shown += valid
        if valid and shown > RUNS:
            more += 1
            continue
        run = known[int(entry["run"])]
        cells = (
            str(run.run),
            str(run.block),
            where(result, run.environment, result.called(run.condition)),
            "yes" if valid else "no",
            (run.steadiness or "too short") if valid else "–",
            *(duration(run.summaries.get(name), digits=DIGITS) for name in METRICS),
            count(entry.get("requests")),
            count(entry.get("errors")),
            count(run.answered),
            percent(run.left_out, signed=False) if valid else "–",
        )
        log = "\n".join(safe(line, 300) for line in (entry.get("log_tail") or [])[-20:])
        found.append(Row(valid, cells, safe(entry.get("reason") or "", 400), log))
    return found, more
