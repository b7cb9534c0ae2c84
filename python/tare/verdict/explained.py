# SPDX-License-Identifier: Apache-2.0
"""A change of requests, explained by the spans on their critical path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tare.verdict.number_text import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tare.verdict.traces import Change, SpanPart

MOST = 3
"""Spans that explain a change."""
SMALL_REST = 0.2
"""The share of a change that other spans may have, which are not named."""
SMALL = 0.001
"""Changes by a smaller share of a request are not worth a sentence."""


def explained(mean: Change, parts: Sequence[SpanPart]) -> str:
    """Which `parts` of a request contain the change of its `mean`, in a sentence."""
    least = SMALL * mean.larger
    is_known = mean.low is not None
    changed = [
        part
        for part in parts
        if abs(part.critical_ns.difference) >= least
        if part.critical_ns.is_shown or not is_known
    ]
    if abs(mean.difference) < least or (is_known and not mean.is_shown):
        moved = f", but {_listed(changed[:MOST])}" if changed else ""
        return f"requests show no change of their mean time{moved}"
    explaining: list[SpanPart] = []
    rest = sum(abs(part.critical_ns.difference) for part in changed)
    for part in changed[:MOST]:
        if rest > SMALL_REST * abs(mean.difference):
            explaining.append(part)
            rest -= abs(part.critical_ns.difference)
    where = f", explained by {_listed(explaining)}" if explaining else ", in many spans"
    longer = "longer" if mean.difference > 0 else "less"
    proof = "" if is_known else "; too few runs to prove it"
    return f"requests take {duration(abs(mean.difference))} {longer}{where}{proof}"


def _listed(parts: Sequence[SpanPart]) -> str:
    named = (
        f"'{part.span}' ({duration(part.critical_ns.difference, signed=True)})" for part in parts
    )
    *first, last = named
    return f"{', '.join(first)} and {last}" if first else last
