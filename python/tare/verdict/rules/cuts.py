# SPDX-License-Identifier: Apache-2.0
"""Whether a verdict depends on where the warm-up was taken to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tare.verdict.evidence.evidence import Evidence
from tare.verdict.judgement import Cut
from tare.verdict.rules import rules

OPPOSED = {
    "slower": ("faster", "unchanged"),
    "faster": ("slower", "unchanged"),
    "unchanged": ("slower", "faster", "shape-changed"),
    "shape-changed": ("slower", "faster", "unchanged"),
}
"""What another cut may not say. To be only less sure, of fewer requests, opposes nothing."""


def with_cuts(evidence: Evidence, cuts: Sequence[Cut]) -> Evidence:
    """The evidence with what other cuts say, and the first of them that opposes its verdict."""
    word, _ = rules.apply(evidence)
    opposed = (cut for cut in cuts if cut.verdict in OPPOSED.get(word, ()))
    return replace(evidence, cuts=tuple(cuts), flipped=next(opposed, None))
