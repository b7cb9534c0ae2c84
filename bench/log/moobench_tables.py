# SPDX-License-Identifier: Apache-2.0
"""MooBench's rows for docs/results.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor

from bench.log.loops import Loop, Reading, verdicts

from tare.verdict import Comparison

BASELINE, OURS = "no instrumentation", "tare, zstd"
HEAD = (
    "configuration",
    "calls",
    "min",
    "p10",
    "median",
    "mean",
    "sd",
    "p99",
    "mean ± ci95, sd of the last loop",
    "heap",
    "GC",
    "complete",
    f"against {BASELINE}",
    f"against {OURS}",
)


def main(version: int, taken: Mapping[str, Sequence[Loop]], failures: Mapping[str, str]) -> str:
    """A row a configuration: both readings, and both verdicts."""
    base, ours = (
        verdicts(taken, name) if name in taken and len(taken) > 1 else {}
        for name in (BASELINE, OURS)
    )
    rows = [
        [name, f"{2 * loops[0].nanoseconds.size:,}", *_cells(Reading.of(loops))]
        + [_told(judged.get(name)) for judged in (base, ours)]
        for name, loops in taken.items()
    ]
    lines = [f"Java {version}, µs a call of depth 10:", "", *_table(HEAD, rows)]
    lines += ["", *(f"- not measured: {name}: {why}" for name, why in failures.items())]
    return "\n".join(lines).rstrip()


def _cells(read: Reading) -> list[str]:
    times = [read.least, read.p10, read.median, read.mean, read.sd, read.p99]
    return [
        *(f"{time:.3f}" for time in times),
        f"{read.last_mean:.3f} ± {read.last_ci95:.3f}, {read.last_sd:.2f}",
        f"{read.heap / 2**20:.0f} MiB ± {read.heap_variation:.0%}",
        str(read.collections),
        "-" if read.complete is None else share(read.complete),
    ]


def _told(comparison: Comparison | None) -> str:
    if comparison is None or comparison.relative is None:
        return "-"
    return f"{comparison.verdict}, {comparison.relative:+.1%}"


def scaled(
    version: int,
    title: str,
    calls: int,
    loops: int,
    rows: Mapping[str, Mapping[int, Sequence[Loop]]],
) -> str:
    """A row a configuration, a column a depth or a number of threads."""
    keys = list(next(iter(rows.values())))
    cells = [[name, *(_scaled_cell(by_key[key]) for key in keys)] for name, by_key in rows.items()]
    about = f"Java {version}, by {title}: median of {loops} loops of {calls:,} calls a thread, µs"
    return "\n".join([f"{about}:", "", *_table((title, *map(str, keys)), cells)])


def _scaled_cell(loops: Sequence[Loop]) -> str:
    if not loops:
        return "-"
    read = Reading.of(loops)
    if read.complete is None or read.complete == 1:
        return f"{read.median:.3f}"
    return f"{read.median:.3f} ({share(read.complete)} complete)"


def share(value: float) -> str:
    """In percent; only all are 100."""
    return "100 %" if value == 1 else f"{floor(value * 1e5) / 1e3:.3f} %"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]
