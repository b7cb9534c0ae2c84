# SPDX-License-Identifier: Apache-2.0
"""Why each verdict is what it is, on a terminal: each reason once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tare.verdict import Comparison, Judgement

NAMED = 3
"""Comparisons with the same reason that are named; more are counted."""


def reason_lines(judgement: Judgement, many: bool) -> Iterator[tuple[str, str]]:
    """Paragraphs as pairs of a heading and text: of primary verdicts, then of other metrics.

    Environments are named if there are `many`.
    """
    primary = [one for one in judgement.comparisons if one.role == "primary"]
    reasons: dict[str, list[Comparison]] = {}
    for one in primary:
        reasons.setdefault(_common(one.reason), []).append(one)
    for reason, having in reasons.items():
        names = _names(having, len(primary), many)
        yield names, f": {reason if len(having) > 1 else having[0].reason}"
    causes: dict[tuple[str, tuple[str, ...]], list[Comparison]] = {}
    for one in primary:
        for cause, found in _causes(one, judgement).items():
            causes.setdefault((cause, tuple(found)), []).append(one)
    for (cause, metrics), having in causes.items():
        some = len(having) < len(primary)
        of = f" ({_names(having, len(primary), many)})" if some else ""
        yield "", f"{', '.join(metrics)}{of}: {cause.replace('{}', metrics[-1])}"


def name_of(one: Comparison, many: bool) -> str:
    """Condition, environment if there are `many`, and span."""
    environment = one.environment if many else ""
    parts = (one.condition, environment, one.span if one.span != "request" else "")
    return ", ".join(part for part in parts if part)


def _names(having: Sequence[Comparison], every: int, many: bool) -> str:
    if len(having) == every > 1:
        return f"all {every} comparisons"
    names = [name_of(one, many) for one in having]
    return "; ".join(names) if len(names) <= NAMED else f"{len(names)} of {every} comparisons"


def _common(reason: str) -> str:
    """Without what the rows of the table show for each metric."""
    text, found, _ = reason.partition("; so far, ")
    return f"{text}." if found else reason


def _causes(primary: Comparison, judgement: Judgement) -> dict[str, list[str]]:
    """Why other metrics of a place have no verdict, if the cause is not their size, which their
    rows show."""
    metrics: dict[str, list[str]] = {}
    for one in judgement.comparisons:
        is_cause = one.verdict in ("inconclusive", "invalid") and not one.reason[:1].isupper()
        is_other = _common(one.reason) != _common(primary.reason)
        if one.place == primary.place and one is not primary and is_cause and is_other:
            cause = _common(one.reason).replace(one.metric, "{}")
            metrics.setdefault(cause, []).append(one.metric)
    return metrics
