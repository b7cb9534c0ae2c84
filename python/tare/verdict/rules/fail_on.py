# SPDX-License-Identifier: Apache-2.0
"""Which verdicts stop a pipeline: `--fail-on`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tare.verdict.number_text import percent

if TYPE_CHECKING:
    from tare.verdict.judgement import Comparison, Judgement, Quantile

WORDS = ("slower", "inconclusive", "invalid")


def hits(judgement: Judgement, words: Iterable[str]) -> list[tuple[str, str]]:
    """The primary comparisons that a gate of these words stops: (word, the comparison in words).

    None of a smoke run. `slower` stops `shape-changed` too where the part that moved is slower: a
    change must not pass by moving its cost into the tail.
    """
    wanted = set() if judgement.smoke else set(words)
    found: list[tuple[str, str]] = []
    for comparison in judgement.comparisons:
        if comparison.role != "primary":
            continue
        part = _slower_part(comparison)
        word = "slower" if part else comparison.verdict
        if word in wanted:
            found.append((word, _said(comparison, part)))
    return found


def _slower_part(comparison: Comparison) -> Quantile | None:
    """The quantile that got slower by most, beyond the threshold, of a distribution that moved."""
    if comparison.verdict != "shape-changed" or comparison.shape is None:
        return None
    slower = [part for part in comparison.shape.shift if part.beyond > 0]
    return max(slower, key=lambda part: part.relative, default=None)


def _said(comparison: Comparison, part: Quantile | None) -> str:
    if part is not None:
        return f"{comparison.title} is shape-changed, p{100 * part.q:g} {percent(part.relative)}"
    effect = (
        ""
        if comparison.relative is None
        else f", {comparison.metric} {percent(comparison.relative)}"
    )
    return f"{comparison.title} is {comparison.verdict}{effect}"
