# SPDX-License-Identifier: Apache-2.0
"""The verdict table on a terminal."""

from __future__ import annotations

import sys
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING

from tare.cli.shared.reason_lines import name_of, reason_lines
from tare.samples.notes import TraceWarning
from tare.terminal import has_colours, printable, styled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tare.verdict import Comparison, Judgement

COLOURS = {
    "slower": "bold red",
    "faster": "bold green",
    "unchanged": "bold cyan",
    "shape-changed": "bold magenta",
    "inconclusive": "bold yellow",
    "invalid": "bold red reverse",
}
WARNINGS = 5
"""How many are printed; the rest are counted."""


def written(judgement: Judgement, history: Sequence[str] = ()) -> str:
    """The comparisons, the reason of each verdict, the published test, and warnings.

    In the width and colours of the terminal on stdout. `history` are lines about earlier results.
    """
    return "".join(f"{line}\n" for line in _lines(judgement, history, _Paint()))


class _Paint:
    """Styles of the terminal on stdout, if it is a terminal, and its width."""

    def __init__(self) -> None:
        self._on = has_colours(sys.stdout)
        self.width = get_terminal_size().columns

    def __call__(self, text: str, style: str) -> str:
        return styled(printable(text), style) if self._on else printable(text)

    def paragraph(self, head: str, style: str, rest: str) -> str:
        """Both, in lines of the terminal's width; `head` styled."""
        # Filled without styles, whose characters have no width.
        head = printable(head)
        text = fill(
            f"{head}{printable(rest)}",
            self.width,
            break_long_words=False,
            break_on_hyphens=False,
        )
        whole = text.startswith(head) and self._on
        return styled(head, style) + text.removeprefix(head) if whole else text


def _lines(judgement: Judgement, history: Sequence[str], paint: _Paint) -> Iterator[str]:
    from tare.published import paragraphs

    many = len({comparison.environment for comparison in judgement.comparisons}) > 1
    if judgement.traces:
        from tare.cli.shared.trace_table import trace_lines

        for head, rest in trace_lines(judgement.traces, paint.width, many):
            yield paint.paragraph(head, "bold", rest) if head else paint(rest, "")
    about_traces = [warning for warning in judgement.warnings if isinstance(warning, TraceWarning)]
    yield from _warnings(about_traces, paint)
    if judgement.traces or about_traces:
        yield ""
    yield from _table(judgement, many, paint)
    yield ""
    for head, rest in reason_lines(judgement, many):
        yield paint.paragraph(head, "bold", rest)
    for paragraph in paragraphs(judgement):
        name, rest = paragraph.split(" (", 1)
        yield ""
        yield paint.paragraph(name, "bold", f" ({rest}")
    if history:
        yield ""
    for line in history:
        yield paint.paragraph("", "", line)
    others = [warning for warning in judgement.warnings if not isinstance(warning, TraceWarning)]
    if others:
        yield ""
    yield from _warnings(others, paint)


def _warnings(lines: Sequence[str], paint: _Paint) -> Iterator[str]:
    for line in lines[:WARNINGS]:
        yield paint.paragraph("warning:", "yellow", f" {line}")
    if (more := len(lines) - WARNINGS) > 0:
        yield f"and {more} more: see --json"


def _table(judgement: Judgement, many: bool, paint: _Paint) -> Iterator[str]:
    """A line for each place, and below it a line for each of its metrics, in common columns."""
    places: dict[tuple[str, ...], list[Comparison]] = {}
    for comparison in judgement.comparisons:
        places.setdefault(comparison.place, []).append(comparison)
    rows = {comparison: _cells(comparison) for comparison in judgement.comparisons}
    widths = [max(map(len, column)) for column in zip(*rows.values(), strict=True)]
    for compared in places.values():
        first = compared[0]
        name = name_of(first, many)
        yield paint.paragraph(name, "bold", f" against {first.baseline}, {_runs(compared)}")
        for comparison in compared:
            word, metric, baseline, condition, effect, interval = (
                cell.rjust(width) if place > 1 else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(rows[comparison], widths, strict=True))
            )
            primary = comparison.role == "primary"
            rest = f"{metric}  {baseline} -> {condition}  {effect}  {interval}"
            word = paint(word, COLOURS[comparison.verdict] if primary else "dim")
            yield f"  {word}  {rest if primary else paint(rest, 'dim')}"


def _runs(compared: Sequence[Comparison]) -> str:
    """The numbers of runs of the first comparison, and the metrics that have others."""
    numbers: dict[str, list[str]] = {}
    for comparison in compared:
        key = f"{comparison.runs_baseline}+{comparison.runs_condition}"
        numbers.setdefault(key, []).append(comparison.metric)
    most, *others = numbers
    more = "; ".join(f"{', '.join(numbers[key])}: {key}" for key in others)
    return f"{most} runs ({more})" if more else f"{most} runs"


def _cells(comparison: Comparison) -> tuple[str, ...]:
    """The verdict, the metric, both values, the effect, and its interval."""
    from tare.verdict.number_text import change, value

    def amount(number: float | None) -> str:
        return "-" if number is None else value(number, comparison.unit)

    def short(effect: float) -> str:
        return change(effect, comparison.unit).replace("points", "pt")

    effect = "-" if comparison.relative is None else short(comparison.relative)
    interval = "-"
    if comparison.low is not None and comparison.high is not None:
        low, high = short(comparison.low), short(comparison.high)
        interval = f"{low.partition(' ')[0]} to {high}"
    values = (amount(comparison.baseline_value), amount(comparison.condition_value))
    return (comparison.verdict, comparison.metric, *values, effect, interval)
