# SPDX-License-Identifier: Apache-2.0
"""What environments cost a program, beside each other."""

from collections.abc import Iterator, Mapping, Sequence

from tare.report import typesetting
from tare.report.result.result import Result
from tare.report.sections.sections import Section, Table
from tare.report.typesetting import NO_BREAK, duration, percent
from tare.samples.manifest import Manifest

_COLUMNS = {
    "system_call_ns": "system call",
    "small_write_ns": "write of 140 B",
    "large_write_ns": "write of 2.4 MB",
    "large_read_ns": "read of 2.4 MB",
    "round_trip_ns": "round trip of 64 B",
    "network_round_trip_ns": "round trip to load",
    "memory_bytes_per_second": "STREAM triad",
    "flops_per_second": "Linpack",
    "cpu_share": "CPU of Linpack",
}
_RATES = {"memory_bytes_per_second": "GB/s", "flops_per_second": "GFLOP/s"}
"""In 10^9 per second."""


def section(result: Result) -> Section:
    """A row per environment."""
    found = _ordered(result.manifest)
    ratio = f" In parentheses is the ratio to {typesetting.safe(next(iter(found), ''), 40)}." * (
        len(found) > 1
    )
    return Section(
        anchor="environments",
        name="Environments",
        gist="what kernel, memory and arithmetic cost a program in each environment",
        how="Measured inside each environment before the first block." + ratio + " Times are"
        " medians, rates are the best of some repetitions. Round trips are over TCP, on the"
        " loopback interface of the environment and to the load generator. The last column is CPU"
        " time per time while Linpack ran: a limit or another program held it back. No verdict uses"
        " these values.",
        tables=[Table("Environments", ["environment", *_COLUMNS.values()], list(_rows(found)))],
        absent="the experiment ran on this machine only",
    )


def short(manifest: Manifest) -> list[str]:
    """Lines for a terminal: a row for each measurement, a column for each environment."""
    rows = list(_rows(_ordered(manifest)))
    if not rows:
        return []
    columns = [("", *_COLUMNS.values()), *rows]
    widths = [max(map(len, column)) for column in columns]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in zip(*columns, strict=True)
    )
    return ["environments, measured inside:", *(f"  {line}" for line in lines)]


def _ordered(manifest: Manifest) -> Mapping[str, Mapping[str, float]]:
    """The environment that the others are compared with comes first."""
    found = manifest.fingerprints
    return dict(sorted(found.items(), key=lambda pair: pair[0] != manifest.baseline))


def _rows(found: Mapping[str, Mapping[str, float]]) -> Iterator[Sequence[str]]:
    first: Mapping[str, float] | None = None
    for name, values in found.items():
        yield [typesetting.safe(name, 40), *(_cell(key, values, first) for key in _COLUMNS)]
        first = first or values


def _cell(key: str, values: Mapping[str, float], first: Mapping[str, float] | None) -> str:
    if key not in values:
        return "–"
    value = values[key]
    if key == "cpu_share":
        return percent(value, signed=False)
    text = duration(value)
    if key in _RATES:
        text = f"{value / 1e9:.3g}{NO_BREAK}{_RATES[key]}"
    known = first.get(key) if first else None
    return f"{text} (×{value / known:.3g})" if known else text
