# SPDX-License-Identifier: Apache-2.0
"""What every reader of samples gives and every judge takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tare.samples.manifest import Compare
    from tare.stats.arrays import Array

SpanKey = tuple[str, str]
"""An environment and a span."""

REQUEST = "request"
"""The span that is a whole request."""
THROUGHPUT, ERROR_RATE = "throughput", "error_rate"
MOST_SPANS = 1_000
"""That are compared."""
OTHER_LOAD = 0.02
"""Loads whose rates differ by a larger share are not the same load."""
ROOT_QUANTILES = {"p50": 0.5, "p99": 0.99}
"""Of the durations of a root span."""


@dataclass(frozen=True)
class LoadStats:
    """How the load and the recording of one run and span went.

    What its source does not record is as if nothing were wrong.
    """

    behind: float = 0.0
    """How much lower the rate was at which requests were sent than the intended rate: a share."""
    lag: float = 0.0
    """The median wait of a request to be sent, as a share of the median response time."""
    clock_error_ns: float = 0.0
    """The mean bound on the error of its durations."""
    orphans: float = 0.0
    """Share of the spans of the run that should be inside of another span that is not there."""
    arrivals: float | None = None
    """Requests a second; None where the run has but one span."""
    others: float = 0.0
    """How many others of the same span were under way when a request began, on average."""


@dataclass(frozen=True)
class Beginning:
    """The requests of a run that its summaries leave out as warm-up."""

    share: float
    """Of its successful requests."""
    mean_ns: float


@dataclass(frozen=True)
class Run:
    """One run of one condition: its summaries, never its requests, are compared.

    `summaries` maps a metric (`p50`, `p95`, `p99`, `mean` in nanoseconds of response time,
    `cpu_service` in nanoseconds of CPU time per request, `throughput` in successful requests per
    second, `error_rate` as the share of failed requests) to its value.
    An invalid run has a `reason` and need not have summaries.
    """

    environment: str
    condition: str
    block: int
    run: int
    span: str
    requests: int
    errors: int
    answered: int
    """Successful requests that the summaries rest on: those of slices left out are not in it."""
    started_ns: int | None
    summaries: Mapping[str, float]
    valid: bool = True
    reason: str | None = None
    left_out: float = 0.0
    """Share of the slices left out because another program used the CPU."""
    disturbed: bool = False
    """Whether so much was hit that there are stalls from outside in what is left."""
    ended_ns: int | None = None
    endpoint: str | None = None
    """The file or URL that the run's requests came from or went to."""
    quantiles: Mapping[float, float] = field(default_factory=dict)
    """Response times in ns at probabilities, its shape: `looks.SHAPE`."""
    lost: float = 0.0
    """Share of the rows of its source that were no requests: without a usable time, left out."""
    zeros: int = 0
    """Those of `answered` that took no time."""
    assumed_unit: str | None = None
    """The unit that its durations were read in, where neither the file nor the user states it."""
    steadiness: str | None = None
    """How the run went: `flat`, `warm-up`, `slowdown`, `no steady state`; None where not known."""
    worth: float | None = None
    """Independent requests that its own are worth; None where it is too short to tell."""
    step_ns: float = 0.0
    """The step to which its times were rounded, to the nearest or down; 0 where to none."""
    drift: float | None = None
    """How much its level still falls, in logarithms: `stats.steady.drift`; None where not known."""
    beginning: Beginning | None = None
    """None where nothing is left out, or it is not known."""
    load_stats: LoadStats = LoadStats()
    gone: bool = False
    """Whether it is said to have been measured, and its requests are not there."""

    @property
    def file(self) -> str:
        """The file that its requests came from; empty for a run of `tare run`, which has a URL."""
        return "" if "://" in (self.endpoint or "") else self.endpoint or ""

    @property
    def failure(self) -> tuple[str, str]:
        """Of an invalid run: the file or the number of the run, and why it does not count."""
        reason = self.reason or ""
        if self.file and reason.startswith(f"{self.file}: "):
            return self.file, reason.removeprefix(f"{self.file}: ")
        return f"run {self.run} ({self.condition}, block {self.block})", reason


class Call(NamedTuple):
    """A span, as its callers and its name make it."""

    caller: int
    """The number of the call around it; 0 for a root span."""
    span: str


@dataclass(frozen=True)
class Part:
    """All spans of one name in a request, on average over requests."""

    critical_ns: float
    """Time on the critical path; the times of all spans sum to the duration of the root span."""
    self_ns: float
    """Time in which no child of the span runs."""
    calls: float
    """The number of spans."""


@dataclass(frozen=True)
class Traced:
    """The requests of one run that have the same root span."""

    requests: int
    mean_ns: float
    parts: Mapping[str, Part]
    """By span, the root span too. A span without an entry is in no request."""
    structures: Mapping[int, int]
    """The number of requests of each structure; structure 0 is all others."""
    broken: float
    """The share of requests that is left out because a span of the trace is missing."""
    quantiles: Mapping[str, float] = field(default_factory=dict)
    """Of the root span's duration in ns, `ROOT_QUANTILES`."""


@dataclass(frozen=True, eq=False)
class Distances:
    """How far the distributions of runs lie apart: symmetric matrices (r, r), in order of `runs`.

    `of` has them by statistic, some of `stats.distances.KINDS`, and always `ks` and `ad`.
    """

    runs: tuple[int, ...]
    of: Mapping[str, Array]


@dataclass(frozen=True)
class Experiment:
    """All runs of one experiment, and what its author declared before it began."""

    runs: tuple[Run, ...]
    baseline: str
    paired: bool
    """Runs with the same environment and block belong together."""
    budget: float
    """Smallest relative difference that matters, as a fraction."""
    primary: str = "p50"
    alpha: float = 0.05
    warnings: tuple[str, ...] = field(default=())
    smoke: bool = False
    """Its author only tried it out: its verdicts are no evidence."""
    looks: tuple[int, ...] = ()
    """The numbers of blocks at which `tare run` judged it, if it did: more were added between."""
    control: str | None = None
    """The condition that is the baseline again, unknown to its author; None without a control."""
    distances: Mapping[SpanKey, Distances] = field(default_factory=dict)
    """Between all runs of an environment and span that answered."""
    limits: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    """Differences in ns that calibration could not detect, by environment, span and metric."""
    traces: Mapping[tuple[int, str], Traced] = field(default_factory=dict)
    """By run and root span, if the source has traces."""
    structures: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """The numbers of the calls of each structure in `traces`."""
    calls: Mapping[int, Call] = field(default_factory=dict)
    """By number."""
    widths: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    """Of the same, the widest bin in ns that a run's metric was counted in."""
    max_errors: float = 0.01
    """A run with a larger share of rows that are no requests, or took no time, does not count."""
    compare: Compare = "conditions"
    """What the conditions of `runs` are called outside: where environments were compared, a run's
    `condition` is its environment, and its `environment` the condition."""
    cuts: Mapping[str, Experiment] = field(default_factory=dict)
    """The same experiment with other ends of the warm-up, by what a person calls them."""

    def asked(self, budget: float | None = None, primary: str | None = None) -> Experiment:
        """The experiment judged by another budget or metric, and so all its cuts."""
        return replace(
            self,
            budget=self.budget if budget is None else budget,
            primary=self.primary if primary is None else primary,
            cuts={name: cut.asked(budget, primary) for name, cut in self.cuts.items()},
        )
