# SPDX-License-Identifier: Apache-2.0
"""Whether a verdict depends on where the warm-up was taken to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tare.verdict import rules
from tare.verdict.evidence import Evidence
from tare.verdict.judgement import Cut


def with_cuts(evidence: Evidence, cuts: Sequence[Cut]) -> Evidence:
    """The evidence with what other cuts say, and the first of them that contradicts it.

    To be only less sure, of fewer requests, is no contradiction; nor is another effect of the same
    sign that differs by less than the threshold.
    """
    word, _ = rules.apply(evidence)
    others = (cut for cut in cuts if word != "inconclusive" and _contradicts(cut, word, evidence))
    return replace(evidence, cuts=tuple(cuts), flipped=next(others, None))


def _contradicts(cut: Cut, word: str, evidence: Evidence) -> bool:
    if cut.relative is None or cut.low is None or cut.high is None:
        return False
    if evidence.relative is None or evidence.low is None or evidence.high is None:
        return False
    if word == "shape-changed":
        return cut.verdict in ("slower", "faster", "unchanged")
    if word == "unchanged":
        moved = abs(cut.relative) > evidence.threshold
        return moved or cut.verdict not in ("unchanged", "inconclusive")
    against = {"slower", "faster", "unchanged"} - {word}
    differ = abs(cut.relative - evidence.relative) > evidence.threshold
    outside = not evidence.low <= cut.relative <= evidence.high
    apart = differ and outside and not cut.low <= evidence.relative <= cut.high
    return cut.verdict in against or apart
