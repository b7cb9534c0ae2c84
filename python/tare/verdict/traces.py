# SPDX-License-Identifier: Apache-2.0
"""What traces say of a comparison: which spans the difference is in, and what requests call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from tare.samples.manifest import Compare

MixWord = Literal["changed", "unchanged", "inconclusive", "invalid"]


@dataclass(frozen=True)
class Change:
    """One number of two sides, the mean of their runs; the interval has 95 % confidence.

    `low` and `high` bound `difference`; they and `p_adjusted` are None where there are too few
    runs.
    """

    baseline: float
    condition: float
    difference: float
    low: float | None = None
    high: float | None = None
    p_adjusted: float | None = None
    """Adjusted for all that were looked at together."""


@dataclass(frozen=True)
class SpanPart:
    """One span in the requests of a root span; times in ns per request."""

    span: str
    critical_ns: Change
    """On the critical path: the differences of all spans sum to that of the root span."""
    self_ns: Change
    calls: Change


@dataclass(frozen=True)
class StructureShare:
    """Requests that call the same spans from the same spans, as a share of all."""

    calls: str
    """How they differ from what most of the baseline's requests call."""
    share: Change


@dataclass(frozen=True, kw_only=True)
class TraceComparison:
    """The requests with one root span: their mean, its parts, and their structures."""

    environment: str
    baseline: str
    condition: str
    root: str
    requests: tuple[int, int]
    mean_ns: Change
    parts: tuple[SpanPart, ...]
    """The largest difference on the critical path first."""
    structures: tuple[StructureShare, ...]
    """The commonest first, of both sides together."""
    verdict: MixWord
    """On the mix of structures."""
    reason: str
    broken: tuple[float, float]
    """The share of each side's requests left out, since a span of their trace is missing."""

    def to_json(self, compare: Compare) -> dict[str, Any]:
        """The JSON form in `tare compare`."""
        from tare.verdict.judgement import renamed

        form: Mapping[str, Any] = asdict(self)
        sides = ("baseline", "condition")
        both = {name: dict(zip(sides, form[name], strict=True)) for name in ("requests", "broken")}
        structures = {
            "verdict": self.verdict,
            "reason": self.reason,
            "shares": form["structures"],
        }
        kept = {
            key: form[key]
            for key in ("environment", "baseline", "condition", "root", "mean_ns", "parts")
        }
        return renamed(kept | both | {"structures": structures}, compare)
