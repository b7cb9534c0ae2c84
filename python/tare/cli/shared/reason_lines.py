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
    primary = [comparison for comparison in judgement.comparisons if comparison.role == "primary"]
    reasons: dict[str, list[Comparison]] = {}
    for comparison in primary:
        reasons.setdefault(_common(comparison.reason), []).append(comparison)
    for reason, having in reasons.items():
        names = _names(having, len(primary), many)
        yield names, f": {reason if len(having) > 1 else having[0].reason}"
    causes: dict[tuple[str, tuple[str, ...]], list[Comparison]] = {}
    for comparison in primary:
        for cause, found in _causes(comparison, judgement).items():
            causes.setdefault((cause, tuple(found)), []).append(comparison)
    for (cause, metrics), having in causes.items():
        some = len(having) < len(primary)
        of = f" ({_names(having, len(primary), many)})" if some else ""
        yield "", f"{', '.join(metrics)}{of}: {cause.replace('{}', metrics[-1])}"


def name_of(comparison: Comparison, many: bool) -> str:
    """Condition, environment if there are `many`, and span."""
    environment = comparison.environment if many else ""
    parts = (
        comparison.condition,
        environment,
        comparison.span if comparison.span != "request" else "",
    )
    return ", ".join(part for part in parts if part)


def _names(having: Sequence[Comparison], every: int, many: bool) -> str:
    if len(having) == every > 1:
        return f"all {every} comparisons"
    names = [name_of(comparison, many) for comparison in having]
    return "; ".join(names) if len(names) <= NAMED else f"{len(names)} of {every} comparisons"


def _common(reason: str) -> str:
    """Without what the rows of the table show for each metric."""
    text, found, _ = reason.partition("; so far, ")
    return f"{text}." if found else reason


def _causes(primary: Comparison, judgement: Judgement) -> dict[str, list[str]]:
    """Why other metrics of a place have no verdict, if the cause is not their size, which their
    rows show."""
    metrics: dict[str, list[str]] = {}
    for comparison in judgement.comparisons:
        is_cause = (
            comparison.verdict in ("inconclusive", "invalid")
            and not comparison.reason[:1].isupper()
        )
        is_other = _common(comparison.reason) != _common(primary.reason)
        if (
            comparison.place == primary.place
            and comparison is not primary
            and is_cause
            and is_other
        ):
            cause = _common(comparison.reason).replace(comparison.metric, "{}")
            metrics.setdefault(cause, []).append(comparison.metric)
    return metrics
