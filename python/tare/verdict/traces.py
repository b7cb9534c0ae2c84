# SPDX-License-Identifier: Apache-2.0
"""Comparisons of traces: which spans contain a difference, and what requests call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from tare.verdict.explained import explained

if TYPE_CHECKING:
    from tare.samples.manifest import Compare

ALPHA = 0.05
MixWord = Literal["changed", "unchanged", "inconclusive", "invalid"]


@dataclass(frozen=True)
class Change:
    """The mean over runs of both sides; `low` and `high` bound `difference` with 95 % confidence.

    `low`, `high` and `p_adjusted` are None if there are too few runs.
    """

    baseline: float
    condition: float
    difference: float
    low: float | None = None
    high: float | None = None
    p_adjusted: float | None = None
    """Adjusted for all spans, or all structures, of the root span."""

    @property
    def is_shown(self) -> bool:
        """Whether the difference is not chance: the adjusted p and the interval say so."""
        if self.p_adjusted is None or self.low is None or self.high is None:
            return False
        return self.p_adjusted <= ALPHA and (self.low > 0 or self.high < 0)

    @property
    def larger(self) -> float:
        """The larger mean of both sides."""
        return max(self.baseline, self.condition)


@dataclass(frozen=True, kw_only=True)
class OutsideRoot:
    """What lies between the round trip at the load generator and the root span, in ns.

    Means over runs of a quantile of each run; `low` and `high` bound the mean of
    `difference_ns` with 95 % confidence, and are None with fewer than two runs.
    """

    environment: str
    condition: str
    root: str
    metric: str
    runs: int
    round_trip_ns: float
    root_ns: float
    difference_ns: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class SpanPart:
    """A span in the requests of a root span; times are ns per request."""

    span: str
    critical_ns: Change
    """Time on the critical path; the differences of all spans sum to the root span's difference."""
    self_ns: Change
    calls: Change


@dataclass(frozen=True)
class StructureShare:
    """Requests with the same set of paths of spans, as a share of all requests."""

    calls: str
    """The difference from the most common calls of the baseline."""
    share: Change


@dataclass(frozen=True, kw_only=True)
class TraceComparison:
    """The requests of a root span: mean time, its parts, and the structures of requests."""

    environment: str
    baseline: str
    condition: str
    root: str
    requests: tuple[int, int]
    mean_ns: Change
    parts: tuple[SpanPart, ...]
    """The largest difference on the critical path first."""
    structures: tuple[StructureShare, ...]
    """The most common structure of both sides first."""
    verdict: MixWord
    """Whether the shares of structures changed."""
    reason: str
    broken: tuple[float, float]
    """The share of each side's requests that is left out because a span is missing."""

    @property
    def explained(self) -> str:
        """Which spans contain the change of the mean time, in a sentence."""
        return explained(self.mean_ns, self.parts)

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
        more = {"explained": self.explained, "structures": structures}
        return renamed(kept | both | more, compare)
