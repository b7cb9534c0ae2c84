# SPDX-License-Identifier: Apache-2.0
"""The table of runs: what every effect, and the control's, can be computed from again."""

from collections.abc import Sequence
from dataclasses import dataclass

from tare.report.result.result import Result
from tare.report.tables import where
from tare.report.typesetting import count, duration, metric, percent, safe
from tare.samples.model import REQUEST

RUNS = 400
"""Valid rows that the table shows; invalid rows always."""
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
    "independent",
    "left out",
)


@dataclass(frozen=True)
class Row:
    """One span of one run; `reason` only where it is invalid, `log` with the first of its run."""

    valid: bool
    cells: Sequence[str]
    reason: str
    log: str


def rows(result: Result) -> tuple[Sequence[Row], int]:
    """Of every run, each span by itself: all invalid rows, the first RUNS valid rows, and how many
    more there are."""
    entries = {entry.run: entry for entry in result.runs}
    found: list[Row] = []
    more, shown, logged = 0, 0, set()
    in_order = sorted(
        result.experiment.runs, key=lambda run: (run.run, run.span != REQUEST, run.span)
    )
    for run in in_order:
        shown += run.valid
        if run.valid and shown > RUNS:
            more += 1
            continue
        cells = (
            str(run.run),
            str(run.block),
            where(result, run.environment, result.called(run.condition), run.span),
            "yes" if run.valid else "no",
            (run.steadiness or "too short") if run.valid else "–",
            *(duration(run.summaries.get(name), digits=DIGITS) for name in METRICS),
            count(run.requests),
            count(run.errors),
            count(run.answered),
            count(run.worth),
            percent(run.left_out, signed=False) if run.valid else "–",
        )
        # One log for all spans of a run.
        lines = [] if run.run in logged else entries[run.run].log_tail
        logged.add(run.run)
        log = "\n".join(safe(line, 300) for line in lines[-20:])
        found.append(Row(run.valid, cells, safe(run.reason or "", 400), log))
    return found, more
