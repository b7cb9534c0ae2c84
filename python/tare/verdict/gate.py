# SPDX-License-Identifier: Apache-2.0
"""Which verdicts stop a pipeline: `--fail-on`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tare.verdict.evidence import LATENCIES
from tare.verdict.words import percent

if TYPE_CHECKING:
    from tare.verdict.judgement import Comparison, Judgement

WORDS = ("slower", "inconclusive", "invalid")


def hits(judgement: Judgement, words: Iterable[str]) -> list[tuple[str, str]]:
    """The primary comparisons that a gate of these words stops: (word, the comparison in words).

    `slower` stops `shape-changed` too where the part that moved is slower: a change must not
    pass by moving its cost into the tail.
    """
    wanted = set(words)
    found: list[tuple[str, str]] = []
    for one in judgement.comparisons:
        if one.role != "primary":
            continue
        tail = _slower_tail(judgement, one)
        word = "slower" if tail else one.verdict
        if word in wanted:
            found.append((word, _said(one, tail)))
    return found


def _slower_tail(judgement: Judgement, primary: Comparison) -> Comparison | None:
    """The metric that got slower by more than the budget, of a distribution that moved."""
    if primary.verdict != "shape-changed":
        return None
    return next(
        (
            one
            for one in judgement.comparisons
            if one.role == "exploratory"
            and one.metric in LATENCIES
            and one.place == primary.place
            and one.verdict == "slower"
            and one.low is not None
            and one.low > one.budget
        ),
        None,
    )


def _said(one: Comparison, tail: Comparison | None) -> str:
    if tail is not None:
        return f"{one.title} is shape-changed, {tail.metric} {percent(tail.relative or 0)}"
    effect = "" if one.relative is None else f", {one.metric} {percent(one.relative)}"
    return f"{one.title} is {one.verdict}{effect}"
