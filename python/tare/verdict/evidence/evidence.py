# SPDX-License-Identifier: Apache-2.0
"""What the rules look at: all that the data say about one comparison, without a verdict yet.

Everything is on the log scale: a difference d of logs is a ratio exp(d).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import log1p

from tare.samples.model import ERROR_RATE, THROUGHPUT
from tare.verdict.evidence.condition_mismatch import LoadMismatch
from tare.verdict.evidence.systematic import NOTHING, Cause, Systematic
from tare.verdict.judgement import Control, Cut, Measured, Quantile

LATENCIES = ("p50", "p95", "p99", "mean")
CPU = "cpu_service"
EXPLORED = (*LATENCIES, THROUGHPUT, ERROR_RATE, CPU)
"""Every metric, in the order of a table."""
Values = Mapping[tuple[int, int], float]
"""One number per run, by its block and its place among the condition's runs of that block."""
TAILS = {"p95": 0.95, "p99": 0.99}
CUT_OFF = 0.25
"""Share of the requests beyond a quantile that may have failed."""
LOPSIDED = 0.25
"""Share of its runs that one condition may have lost more than the other."""


@dataclass(frozen=True, kw_only=True)
class Evidence(Measured):
    """All that the rules look at for one comparison."""

    paired: bool
    alpha: float
    planned: int
    """Runs of the condition with fewer of them, valid or not; pairs of runs when paired."""
    invalid: tuple[str, ...]
    """Why runs of either condition do not count: a line for each condition and cause."""
    disturbed: int = 0
    """Runs of both that decide nothing of this metric, since other tasks had the CPU."""
    least: int
    """Fewest runs per condition for any verdict."""
    families: int
    """How many families of comparisons share the error rate."""
    family: Hashable = None
    """The comparisons whose runs are exchanged together: those of one value."""
    values: tuple[Values, Values] = ({}, {})
    """Logs of the metric in the runs of the baseline and of the condition; paired, of both."""
    systematic: Systematic = NOTHING
    """What the interval is widened by."""
    step: float = 0.0
    """The coarsest step to which times were rounded or counted, as a share of the baseline."""
    p_t: float | None = None
    """Of the t test that the interval belongs to."""
    zero: bool = False
    """The value of a run is 0, which no ratio can be taken of."""
    constant: bool = False
    """All requests of a run took exactly as long as each other; of few, those of all runs."""
    thin_tail: bool = False
    """Too few independent requests of either condition's runs are beyond the quantile."""
    clock_error: float = 0.0
    """The bound on the error of durations, as a share of the baseline."""
    load: LoadMismatch | None = None
    """Of an inner span that had another load in one condition than in the other."""
    failing: float = 0.0
    """Share of the condition's requests that failed, less that of the baseline's."""
    failed: tuple[int, int] = (0, 0)
    """Runs of the baseline and of the condition that do not count."""
    recorded: tuple[int, int] = (0, 0)
    """Runs of both, valid or not."""
    holes: tuple[str, ...] = ()
    """Blocks and runs without data and without a recorded failure."""
    control: Control | None = None
    """The alarm of the environment's A/A pair."""
    cuts: tuple[Cut, ...] = ()
    flipped: Cut | None = None
    """One of the cuts of the warm-up that tells something else."""
    cpu: Evidence | None = None

    @property
    def worse(self) -> float:
        """The effect, above 0 where the condition is worse."""
        relative = self.relative or 0.0
        return -relative if self.metric == THROUGHPUT else relative

    @property
    def runs(self) -> int:
        """Runs of the condition that has fewer."""
        return min(self.runs_baseline, self.runs_condition)

    @property
    def significant(self) -> bool:
        """Whether the adjusted p is at most alpha and the interval excludes zero."""
        if self.p_adjusted is None:
            return False
        return self.p_adjusted <= self.alpha and self.excludes_zero

    @property
    def hidden(self) -> Cause | None:
        """What the difference may be but for, where chance alone is excluded."""
        if self.low is None or self.high is None or self.systematic.cause is None:
            return None
        chance = log1p(self.low) - self.systematic.low, log1p(self.high) - self.systematic.high
        sure = chance[0] > 0 or chance[1] < 0
        return self.systematic.cause if sure and not self.excludes_zero else None

    @property
    def mostly_systematic(self) -> bool:
        """Whether the interval is wide for another reason than chance."""
        if self.low is None or self.high is None or self.low <= -1:
            return False
        width = log1p(self.high) - log1p(self.low)
        return 2 * (self.systematic.high - self.systematic.low) > width

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    @property
    def lost(self) -> bool:
        """Whether failed runs left too few for a verdict where enough were recorded."""
        return bool(self.invalid) and (self.runs == 0 or self.runs < self.least <= self.planned)

    @property
    def stalled(self) -> bool:
        """Whether other tasks left too few undisturbed runs for a verdict."""
        return bool(self.disturbed) and self.runs < self.least <= self.planned

    @property
    def cut_off(self) -> bool:
        """Whether the requests that failed may be the slowest: so many more of one side that
        its tail is lower than it would be with them."""
        many = abs(self.failing) > CUT_OFF * (1 - TAILS.get(self.metric, 0.0))
        slower_yet = self.significant and self.failing * (self.relative or 0.0) > 0
        return self.metric in TAILS and many and not slower_yet

    @property
    def lopsided(self) -> bool:
        """Whether so many more runs of one side failed that the rest may be a biased sample."""
        baseline, condition = (
            failed / max(whole, 1) for failed, whole in zip(self.failed, self.recorded, strict=True)
        )
        return abs(baseline - condition) > LOPSIDED

    @property
    def negligible(self) -> bool:
        """Whether the whole interval lies inside the threshold."""
        if self.low is None or self.high is None:
            return False
        return -self.threshold < self.low and self.high < self.threshold

    @property
    def clear(self) -> bool:
        """Whether the whole interval lies outside the threshold."""
        if self.low is None or self.high is None:
            return False
        return self.low > self.threshold or self.high < -self.threshold

    @property
    def by_clock(self) -> bool:
        """Whether the clocks may be off by more than the effect, and by more than is ignored."""
        return self.clock_error > max(abs(self.relative or 0.0), self.threshold)

    @property
    def by_load(self) -> bool:
        """Whether a difference of load from outside can have made the effect, or have hidden it."""
        if self.load is None or self.load.calls or abs(self.load.others) <= self.threshold:
            return False
        against = (self.relative or 0.0) * self.load.others < 0
        return not (self.significant and against)

    @property
    def equivalent(self) -> bool:
        """Whether both one-sided tests at alpha place the effect inside the threshold.

        Never where times have a step that is larger than the budget.
        """
        if self.p_equivalent is None or self.step > self.budget:
            return False
        return self.p_equivalent <= self.alpha

    @property
    def moved(self) -> tuple[Quantile, ...]:
        """The quantiles that differ by more than the threshold."""
        return (
            ()
            if self.shape is None
            else tuple(quantile for quantile in self.shape.shift if quantile.beyond)
        )
