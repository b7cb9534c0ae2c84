# SPDX-License-Identifier: Apache-2.0
"""What a judge says: a word, an effect with its interval, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

from tare.samples.model import ERROR_RATE, REQUEST, THROUGHPUT
from tare.samples.notes import Note

if TYPE_CHECKING:
    from tare.samples.manifest import Compare
    from tare.verdict.number_text import Unit
    from tare.verdict.traces import OutsideRoot, TraceComparison

Word = Literal["slower", "faster", "unchanged", "shape-changed", "inconclusive", "invalid"]
Role = Literal["primary", "exploratory"]
RunsShow = Literal["difference", "no difference"]
LEVEL = 0.95
UNITS: Mapping[str, Unit] = {THROUGHPUT: "requests/s", ERROR_RATE: "share"}
"""Of metrics that are no times."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One condition against the baseline in one metric of one span, in numbers.

    The values are the geometric means of each side's runs, in `unit`. `relative`, `low`, `high` and
    `mde` are fractions of the baseline, except for a share: there they are the difference itself.
    `low` and `high` bound the effect with 95 % confidence. `p_equivalent` is the p of the tests
    that put the effect inside the threshold. `runs_needed` is how many runs per condition it takes
    in all to show what `runs_show` says: that there is a difference as large as what was seen, or
    that it is inside the threshold.
    `threshold` is the smallest difference that can be judged: the budget, or more where these
    runs cannot see as little. What does not exist is None.
    """

    environment: str
    baseline: str
    condition: str
    span: str
    metric: str
    role: Role
    budget: float
    runs_baseline: int
    runs_condition: int
    baseline_value: float | None = None
    condition_value: float | None = None
    relative: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    p_equivalent: float | None = None
    mde: float | None = None
    runs_needed: int | None = None
    runs_show: RunsShow | None = None
    threshold: float = 0.0
    shape: Shape | None = None
    effect_sizes: EffectSizes | None = None

    @property
    def unit(self) -> Unit:
        """The unit of both values."""
        return UNITS.get(self.metric, "ns")

    @property
    def difference(self) -> float | None:
        """How much larger the condition's value is, in `unit`."""
        if self.baseline_value is None or self.condition_value is None:
            return None
        return self.condition_value - self.baseline_value


@dataclass(frozen=True)
class Quantile:
    """How far one quantile moved, as a fraction, in a band that holds for all of them together."""

    q: float
    relative: float
    low: float
    high: float
    threshold: float
    """The budget, or the least that can be told of this quantile where that is more."""

    @property
    def beyond(self) -> float:
        """1 where it is surely larger than the baseline's by more than the threshold, -1 where it
        is smaller, else 0."""
        return (self.low > self.threshold) - (self.high < -self.threshold)

    @property
    def inside(self) -> bool:
        """Whether it surely differs by less than the threshold."""
        return -self.threshold < self.low and self.high < self.threshold


@dataclass(frozen=True)
class Shape:
    """Whether the distributions of the runs differ, and where."""

    ks_p: float | None
    ad_p: float | None
    """Of the run-distance permutation test; None where the distances are not known."""
    p_adjusted: float
    """Of the band: the least of its quantiles, adjusted for all of them in all comparisons."""
    shift: tuple[Quantile, ...]
    pages: tuple[Page, ...] = ()
    apart: tuple[Apart, ...] = ()


@dataclass(frozen=True)
class Apart:
    """The mean distance between two runs by one statistic, as `stats.distances.KINDS` names it."""

    statistic: str
    within: float
    """Of runs of one condition."""
    between: float
    """Of runs of both."""


@dataclass(frozen=True)
class Page:
    """The chances that a page of so many requests meets a request beyond the baseline's p99."""

    requests: int
    baseline: float
    condition: float


@dataclass(frozen=True)
class EffectSizes:
    """The same difference by order alone: of the runs' summaries, whatever their distribution."""

    cliffs_delta: float
    vargha_delaney: float
    hodges_lehmann: float
    """As a fraction, and so its interval of `level`; None where so few runs have none."""
    low: float | None
    high: float | None
    level: float | None


@dataclass(frozen=True)
class Cut:
    """What the same runs say when more of their beginning is left out."""

    name: str
    verdict: Word
    relative: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Control:
    """The hidden second baseline of an environment against the first: an alarm forbids verdicts."""

    environment: str
    runs: int
    metric: str
    """That of the least p."""
    relative: float
    p_adjusted: float
    """Least p of paired t-tests, by Holm over metrics and spans."""
    alarm: bool


@dataclass(frozen=True, kw_only=True)
class Comparison(Measured):
    """The numbers, the word for them, and why."""

    verdict: Word
    reason: str
    cuts: tuple[Cut, ...] = ()
    compare: Compare = "conditions"
    """What `baseline` and `condition` are: see `Experiment.compare`."""

    @property
    def place(self) -> tuple[str, str, str, str]:
        """What was compared with what, and where, whatever the metric."""
        return self.environment, self.baseline, self.condition, self.span

    @property
    def title(self) -> str:
        """What was compared with what, and where, for a person."""
        where = [self.environment, "" if self.span == REQUEST else self.span]
        named = "".join(f", {part}" for part in where if part)
        return f"'{self.condition}' against '{self.baseline}'{named}"

    def to_json(self) -> dict[str, Any]:
        """The comparison in the JSON form of `tare compare`."""
        form = {
            "environment": self.environment or None,
            "baseline": self.baseline,
            "condition": self.condition,
            "span": self.span,
            "metric": self.metric,
            "role": self.role,
            "budget": self.budget,
            "threshold": self.threshold,
            "verdict": self.verdict,
            "unit": self.unit,
            "values": {
                "baseline": _number(self.baseline_value),
                "condition": _number(self.condition_value),
            },
            "effect": {
                "relative": _number(None if self.unit == "share" else self.relative),
                "absolute_ns": _number(self.difference if self.unit == "ns" else None),
                "difference": _number(self.difference),
            },
            "interval": {"low": _number(self.low), "high": _number(self.high), "level": LEVEL},
            "p": _number(self.p),
            "p_adjusted": _number(self.p_adjusted),
            "p_equivalent": _number(self.p_equivalent),
            "runs": {"baseline": self.runs_baseline, "condition": self.runs_condition},
            "mde": _number(self.mde),
            "runs_needed": self.runs_needed,
            "runs_show": self.runs_show,
            "effect_sizes": None if self.effect_sizes is None else asdict(self.effect_sizes),
            "shape": None if self.shape is None else asdict(self.shape),
            "warm_up_cuts": [asdict(cut) for cut in self.cuts],
            "reason": self.reason,
        }
        return renamed(form, self.compare)


@dataclass(frozen=True)
class Published:
    """The pooled t-test of the function hook paper, beside the verdict; never part of it."""

    t: float
    p: float
    pooled_sd_ns: float
    mean_difference_ns: float
    median_difference_ns: float
    n: int
    """Requests of the baseline."""
    n_condition: int


@dataclass(frozen=True)
class PublishedBestFit:
    """The comparison of two best-fit runs of Vinken's thesis, beside the verdict; never part of it.

    Runs are counted from 1, as they were given. `among_baseline` is the greatest distance of the
    baseline's best run to one of its own siblings.
    """

    condition: str
    span: str
    baseline_run: int
    condition_run: int
    anderson_darling: float
    anderson_darling_p: float
    kolmogorov_smirnov: float
    kolmogorov_smirnov_p: float
    among_baseline: float | None
    percentiles_ns: Mapping[str, tuple[float, float]]
    """By `p50` to `p100`: of the baseline's run, of the condition's."""


@dataclass(frozen=True)
class Judgement:
    """Every comparison, those of the primary metric first, and every warning and note."""

    comparisons: tuple[Comparison, ...]
    lines: tuple[str, ...] = field(default=())
    """Warnings, and notes where they are of that type."""
    published: Published | tuple[PublishedBestFit, ...] | None = None
    controls: tuple[Control, ...] = ()
    smoke: bool = False
    """Of a smoke run: no verdict is evidence, and none fails a gate."""
    compare: Compare = "conditions"
    """What the conditions of `comparisons` are: see `Experiment.compare`."""
    traces: tuple[TraceComparison, ...] = ()
    round_trips: tuple[OutsideRoot, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """The lines that ask for something."""
        return tuple(line for line in self.lines if not isinstance(line, Note))

    @property
    def notes(self) -> tuple[str, ...]:
        """The others."""
        return tuple(line for line in self.lines if isinstance(line, Note))

    def warned(self, *more: str) -> Judgement:
        """The judgement with more warnings."""
        return replace(self, lines=(*self.lines, *more))

    def to_json(self, published: bool = False) -> dict[str, Any]:
        """The JSON form; `published` adds its key even when the test has no result."""
        result: dict[str, Any] = {
            "compare": self.compare,
            "comparisons": [comparison.to_json() for comparison in self.comparisons],
        }
        if published or self.published is not None:
            result["published"] = _published(self.published)
        result["controls"] = [renamed(asdict(control), self.compare) for control in self.controls]
        result["traces"] = [trace.to_json(self.compare) for trace in self.traces]
        result["round_trips"] = [renamed(asdict(trip), self.compare) for trip in self.round_trips]
        lines = {"warnings": list(self.warnings), "notes": list(self.notes)}
        return result | {"smoke": self.smoke} | lines


def renamed(form: Mapping[str, Any], compare: Compare) -> dict[str, Any]:
    """The JSON of a comparison or control, with the keys `environment` and `condition` exchanged
    if environments are compared; the same again restores it."""
    if compare == "conditions":
        return dict(form)
    other = {"environment": "condition", "condition": "environment"}
    return {other.get(key, key): value for key, value in form.items()}


def _published(
    published: Published | tuple[PublishedBestFit, ...] | None,
) -> dict[str, Any] | list[dict[str, Any]] | None:
    if isinstance(published, tuple):
        return [asdict(fit) for fit in published]
    return None if published is None else asdict(published)


def _number(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None
