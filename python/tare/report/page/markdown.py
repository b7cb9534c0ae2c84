# SPDX-License-Identifier: Apache-2.0
"""Markdown that other people's names cannot break; verdicts as a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from tare.published import paragraphs
from tare.report.typesetting import (
    change,
    duration,
    interval,
    metric,
    plural,
    safe,
    typeset,
    values,
)
from tare.samples.model import REQUEST

if TYPE_CHECKING:
    from tare.report.result.history import Standing
    from tare.verdict import Comparison, Judgement
    from tare.verdict.traces import TraceComparison

LONGEST = 500
# Characters of what a comment lists; GitHub takes 65,536 in all.
DECIDING, OTHERS, LISTED = 30_000, 10_000, 10_000
# What a reader must not miss comes first, as the last may have no place.
_ORDER = ("invalid", "slower", "shape-changed", "inconclusive", "faster", "unchanged")
_HEAD = "| verdict | condition | against | metric | values | effect | 95 % interval | runs |"
_PATH_HEAD = "| span | time on the critical path | difference |"
_ROOTS, _SPANS = 3, 10
_RULE = "|---|---|---|---|---|---:|---:|---:|"


def comment(judgement: Judgement, standing: Standing | None = None) -> str:
    """The judgement as GitHub's Markdown: what decides in a table, all else folded."""
    by_word = sorted(judgement.comparisons, key=lambda comparison: _ORDER.index(comparison.verdict))
    primary = [comparison for comparison in by_word if comparison.role == "primary"]
    others = [comparison for comparison in judgement.comparisons if comparison.role != "primary"]
    parts = [f"### Tare: {_counted(primary)}", _table(primary, DECIDING)]
    if standing is not None:
        parts.append(_items(standing.lines()))
    if judgement.traces:
        parts.append(_folded("Critical path of requests", _critical_path(judgement.traces)))
    if published := paragraphs(judgement):
        parts.append(_folded("Published analysis", _items(published)))
    if others:
        parts.append(_folded("Other metrics", _table(others, OTHERS)))
    if judgement.warnings:
        number = len(judgement.warnings)
        parts.append(_folded(plural(number, "warning"), _items(judgement.warnings)))
    if judgement.notes:
        parts.append(_folded("Notes", _items(judgement.notes)))
    return "\n\n".join(parts)


def cell(value: object) -> str:
    """Text for a cell of a Markdown table: it cannot end the cell, mark up or be HTML."""
    flat = " ".join(str(value).split())
    return re.sub(r"([\\`*_\[\]<>|&#~$])", r"\\\1", flat)


def prose(value: object) -> str:
    """Text that is shown as it is: it names nobody and links to no issue either."""
    # GitHub looks for @name and #1 when the backslashes are gone; it does not look past a comment.
    flat = " ".join(str(value).split())
    return re.sub(r"((?<!\w)@|\\#)", r"\1<!-- -->", cell(safe(flat, LONGEST)))


def code(name: str) -> str:
    """A name as code, in which nothing is marked up; also within a table."""
    text = safe(" ".join(name.split()), LONGEST).replace("|", "\\|")
    if not text:
        return ""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    space = " " if "`" in text else ""
    return f"{fence}{space}{text}{space}{fence}"


def _critical_path(traces: Sequence[TraceComparison]) -> str:
    """A sentence and a table of each root span, and the verdict on its calls."""
    parts = []
    for trace in traces[:_ROOTS]:
        rows = [("whole request", trace.mean_ns)]
        rows += [(part.span, part.critical_ns) for part in trace.parts[:_SPANS]]
        lines = [
            f"| {code(name)} | {duration(of.baseline)} -> {duration(of.condition)} |"
            f" {duration(of.difference, signed=True)} |"
            for name, of in rows
        ]
        parts += [
            f"{code(trace.condition)} against {code(trace.baseline)}, {code(trace.root)}",
            prose(trace.explained),
            "\n".join([_PATH_HEAD, "|---|---|---:|", *lines]),
            prose(f"calls {trace.verdict}: {trace.reason}"),
        ]
    return "\n\n".join(parts)


def _counted(comparisons: Sequence[Comparison]) -> str:
    verdicts = [comparison.verdict for comparison in comparisons]
    return ", ".join(f"{verdicts.count(word)} {word}" for word in dict.fromkeys(verdicts))


def _table(comparisons: Sequence[Comparison], most: int) -> str:
    with_reason = any(comparison.role == "primary" for comparison in comparisons)
    head = [_HEAD + " reason |", _RULE + "---|"] if with_reason else [_HEAD, _RULE]
    rows = _within(most, [_row(comparison, with_reason) for comparison in comparisons])
    table = "\n".join([*head, *rows])
    rest = comparisons[len(rows) :]
    return f"{table}\n\nand {len(rest)} more: {_counted(rest)}" if rest else table


def _row(comparison: Comparison, with_reason: bool) -> str:
    places = (comparison.environment, "" if comparison.span == REQUEST else comparison.span)
    where = [code(part) for part in places if part]
    cells = (
        f"**{comparison.verdict}**" if comparison.role == "primary" else comparison.verdict,
        ", ".join([code(comparison.condition), *where]),
        code(comparison.baseline),
        metric(comparison.metric),
        values(comparison.baseline_value, comparison.condition_value, comparison.unit),
        change(comparison.relative, comparison.unit),
        interval(comparison.low, comparison.high, comparison.unit),
        f"{comparison.runs_baseline}+{comparison.runs_condition}",
        *([prose(typeset(comparison.reason))] if with_reason else []),
    )
    return f"| {' | '.join(cells)} |"


def _items(lines: Sequence[str]) -> str:
    shown = _within(LISTED, [f"- {prose(line)}" for line in lines])
    more = [f"- and {len(lines) - len(shown)} more"] if len(shown) < len(lines) else []
    return "\n".join([*shown, *more])


def _within(most: int, lines: Sequence[str]) -> list[str]:
    """The first lines, of that many characters in all."""
    ends = accumulate(1 + len(line) for line in lines)
    return [line for line, end in zip(lines, ends, strict=True) if end <= most]


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{content}\n\n</details>"
