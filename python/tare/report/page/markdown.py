# SPDX-License-Identifier: Apache-2.0
"""Markdown that other people's names cannot break; verdicts as a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from tare.published import paragraphs
from tare.report import words
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
    by_word = sorted(judgement.comparisons, key=lambda one: _ORDER.index(one.verdict))
    primary = [one for one in by_word if one.role == "primary"]
    others = [one for one in judgement.comparisons if one.role != "primary"]
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
        parts.append(_folded(words.plural(number, "warning"), _items(judgement.warnings)))
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
    return re.sub(r"((?<!\w)@|\\#)", r"\1<!-- -->", cell(words.safe(flat, LONGEST)))


def code(name: str) -> str:
    """A name as code, in which nothing is marked up; also within a table."""
    text = words.safe(" ".join(name.split()), LONGEST).replace("|", "\\|")
    if not text:
        return ""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    space = " " if "`" in text else ""
    return f"{fence}{space}{text}{space}{fence}"


def _critical_path(traces: Sequence[TraceComparison]) -> str:
    """A sentence and a table of each root span, and the verdict on its calls."""
    parts = []
    for one in traces[:_ROOTS]:
        rows = [("whole request", one.mean_ns)]
        rows += [(part.span, part.critical_ns) for part in one.parts[:_SPANS]]
        lines = [
            f"| {code(name)} | {words.duration(of.baseline)} -> {words.duration(of.condition)} |"
            f" {words.duration(of.difference, signed=True)} |"
            for name, of in rows
        ]
        parts += [
            f"{code(one.condition)} against {code(one.baseline)}, {code(one.root)}",
            prose(one.explained),
            "\n".join([_PATH_HEAD, "|---|---|---:|", *lines]),
            prose(f"calls {one.verdict}: {one.reason}"),
        ]
    return "\n\n".join(parts)


def _counted(comparisons: Sequence[Comparison]) -> str:
    verdicts = [one.verdict for one in comparisons]
    return ", ".join(f"{verdicts.count(word)} {word}" for word in dict.fromkeys(verdicts))


def _table(comparisons: Sequence[Comparison], most: int) -> str:
    with_reason = any(one.role == "primary" for one in comparisons)
    head = [_HEAD + " reason |", _RULE + "---|"] if with_reason else [_HEAD, _RULE]
    rows = _within(most, [_row(one, with_reason) for one in comparisons])
    table = "\n".join([*head, *rows])
    rest = comparisons[len(rows) :]
    return f"{table}\n\nand {len(rest)} more: {_counted(rest)}" if rest else table


def _row(one: Comparison, with_reason: bool) -> str:
    places = (one.environment, "" if one.span == REQUEST else one.span)
    where = [code(part) for part in places if part]
    cells = (
        f"**{one.verdict}**" if one.role == "primary" else one.verdict,
        ", ".join([code(one.condition), *where]),
        code(one.baseline),
        words.metric(one.metric),
        words.values(one.baseline_value, one.condition_value, one.unit),
        words.change(one.relative, one.unit),
        words.interval(one.low, one.high, one.unit),
        f"{one.runs_baseline}+{one.runs_condition}",
        *([prose(words.typeset(one.reason))] if with_reason else []),
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
