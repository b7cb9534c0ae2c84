# SPDX-License-Identifier: Apache-2.0
"""What a bench measured, beside its bars: a file of results, a table for people."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import exp, inf, log
from statistics import median
from typing import Any, Literal

from bench.results import ROOT, renew

from tare.stats.hodges_lehmann import paired_shift

FOLDER = ROOT / "bench"


@dataclass(frozen=True)
class Case:
    """Values of a subject and of the peer it was turned about with, one each a turn."""

    name: str
    subject: str
    peer: str
    unit: str
    values: Sequence[float]
    peer_values: Sequence[float] = ()
    note: str = ""

    @property
    def ratio(self) -> float:
        """Of a turn's value to its peer's, the median over the turns: what slows a whole turn
        down does not count."""
        return median(own / other for own, other in self._pairs)

    @property
    def interval(self) -> tuple[float, float]:
        """Of 95 %, of the ratio; without an end for fewer than 6 turns."""
        shift = paired_shift([log(value / other) for value, other in self._pairs])
        return (
            (0.0, inf)
            if shift.interval is None
            else (exp(shift.interval[0]), exp(shift.interval[1]))
        )

    @property
    def difference(self) -> float:
        """Of a turn's value and its peer's, the median over the turns."""
        return median(own - other for own, other in self._pairs)

    @property
    def _pairs(self) -> Iterator[tuple[float, float]]:
        return zip(self.values, self.peer_values, strict=True)


@dataclass(frozen=True)
class Bar:
    """What an issue asks of a case."""

    of: Literal["value", "least", "most", "difference", "ratio", "upper ratio", "lower ratio"]
    """`value` is the median over the turns, `least` and `most` are the extremes; `difference` is
    value - peer_value, `ratio` is value / peer_value, turn by turn; `upper ratio` and `lower ratio`
    are the ends of the 95 % interval of the ratio (Hodges and Lehmann, 1963, of its logarithm)."""
    holds: Literal["at most", "at least", "below"]
    bar: float
    sentence: str

    def measured(self, case: Case) -> float:
        """The number to hold against the bar, from the raw values."""
        if self.of == "value":
            return median(case.values)
        if self.of == "least":
            return min(case.values)
        if self.of == "most":
            return max(case.values)
        if self.of == "difference":
            return case.difference
        if self.of == "ratio":
            return case.ratio
        lower, upper = case.interval
        return upper if self.of == "upper ratio" else lower

    def met(self, case: Case) -> bool:
        """Whether the case reaches the bar."""
        number = self.measured(case)
        if self.holds == "at least":
            return number >= self.bar
        return number < self.bar if self.holds == "below" else number <= self.bar


def publish(part: str, cases: Sequence[Case], command: str, about: str, more: str = "") -> bool:
    """Writes and prints all results of a part, `more` below them; returns whether every bar is met.

    Raises SystemExit, when all is written, where a case that has a bar was not measured.
    """
    wanted = read_bars(part)
    bars = matched(wanted, cases)
    run = f"{datetime.now(UTC):%Y%m%dT%H%M%S}"
    folder = FOLDER / part
    rows = [_row(part, case, bars.get(case.name), run) for case in cases]
    (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    raw = [
        {"case": case.name, "values": [*case.values], "peer": [*case.peer_values]} for case in cases
    ]
    (folder / "raw.json").write_text(json.dumps(raw))
    table = "\n".join([*_table(cases, bars), "", more]).rstrip()
    print(table)
    short = [case.name for case in cases if case.name in bars and not bars[case.name].met(case)]
    ending = f"Falls short: {', '.join(short) or 'nothing'}."
    renew(f"bench-{part}", f"Bench: {part}", command, f"{about}\n\n{table}\n\n{ending}")
    if absent := [name for name in wanted if not matched({name: wanted[name]}, cases)]:
        raise SystemExit(f"bench/{part}: not measured: {', '.join(absent)}")
    return not short


def read_bars(part: str) -> dict[str, Bar]:
    """The bars of a part by the names of their cases, which are regular expressions."""
    text = (FOLDER / part / "bars.toml").read_text()
    return {name: Bar(**fields) for name, fields in tomllib.loads(text).items()}


def matched(bars: Mapping[str, Bar], cases: Sequence[Case]) -> dict[str, Bar]:
    """By the name of a case, the first bar that is meant for it."""
    found = {}
    for case in cases:
        for name, bar in bars.items():
            if re.fullmatch(name, case.name):
                found[case.name] = bar
                break
    return found


def _row(part: str, case: Case, bar: Bar | None, run: str) -> dict[str, Any]:
    peer = median(case.peer_values) if case.peer_values else None
    return {
        "part": part,
        "case": case.name,
        "subject": case.subject,
        "peer": case.peer,
        "value": median(case.values),
        "peer_value": peer,
        "unit": case.unit,
        "ratio": case.ratio if case.peer_values else None,
        "bar": bar.bar if bar else None,
        "met": bar.met(case) if bar else None,
        "run": run,
        "note": case.note,
    }


def _table(cases: Sequence[Case], bars: dict[str, Bar]) -> list[str]:
    lines = [
        "| case | subject | value | peer | value | difference | ratio | bar | met |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for case in cases:
        value = median(case.values)
        cells = [case.name, case.subject, f"{value:.4g} {case.unit}"]
        if case.peer_values:
            peer = median(case.peer_values)
            difference = f"{case.difference:+.4g} {case.unit}"
            cells += [case.peer, f"{peer:.4g} {case.unit}", difference, f"{case.ratio:.3f}"]
        else:
            cells += ["-"] * 4
        bar = bars.get(case.name)
        if bar:
            met = "yes" if bar.met(case) else "NO"
            if "ratio" in bar.of and bar.of != "ratio":
                met += f", {bar.measured(case):.3f}"
            cells += [f"{bar.of} {bar.holds} {bar.bar:g}", met]
        else:
            cells += ["-", "-"]
        lines.append(f"| {' | '.join(cells)} |")
    notes = [f"- {case.name}: {case.note}" for case in cases if case.note]
    return [*lines, "", *notes] if notes else lines
