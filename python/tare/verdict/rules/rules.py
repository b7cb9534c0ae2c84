# SPDX-License-Identifier: Apache-2.0
"""The rules that turn evidence into a word: read from the top, the first that holds decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tare.verdict.evidence.evidence import Evidence
from tare.verdict.judgement import Word
from tare.verdict.rules import reasons


@dataclass(frozen=True)
class Rule:
    """A word, when it holds, and how to say why in one sentence."""

    word: Word
    holds: Callable[[Evidence], bool]
    reason: Callable[[Evidence], str]


def _changed(evidence: Evidence) -> bool:
    return evidence.significant and not evidence.negligible


def _shape_alone(evidence: Evidence) -> bool:
    # Where the location itself seems to have moved, so has the rest: that is no change of shape.
    return bool(evidence.moved) and not evidence.clear


RULES: tuple[Rule, ...] = (
    Rule("invalid", lambda e: e.lost, reasons.lost),
    Rule("invalid", lambda e: e.control is not None, reasons.control),
    Rule("inconclusive", lambda e: e.stalled, reasons.stalled),
    Rule("inconclusive", lambda e: e.runs < e.least, reasons.too_few_runs),
    Rule("inconclusive", lambda e: e.zero or e.constant, reasons.too_coarse),
    Rule("invalid", lambda e: e.by_clock, reasons.by_clock),
    Rule("invalid", lambda e: e.by_load, reasons.by_load),
    Rule("inconclusive", lambda e: bool(e.holes) or e.lopsided or e.cut_off, reasons.biased),
    Rule("inconclusive", lambda e: e.thin_tail, reasons.thin_tail),
    Rule("inconclusive", lambda e: e.flipped is not None, reasons.flipped),
    Rule("slower", lambda e: _changed(e) and e.worse > 0, reasons.changed),
    Rule("faster", lambda e: _changed(e) and e.worse < 0, reasons.changed),
    Rule("unchanged", lambda e: e.equivalent and not e.moved, reasons.unchanged),
    Rule("shape-changed", _shape_alone, reasons.shape_changed),
    Rule("inconclusive", lambda _: True, reasons.undecided),
)


def apply(evidence: Evidence) -> tuple[Word, str]:
    """The word for the evidence and its reason."""
    rule = next(rule for rule in RULES if rule.holds(evidence))
    decided = rule.word not in ("invalid", "inconclusive")
    return rule.word, rule.reason(evidence) + (reasons.own_load(evidence) if decided else "")
