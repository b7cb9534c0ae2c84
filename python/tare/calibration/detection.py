# SPDX-License-Identifier: Apache-2.0
"""Which added delay is detected how often, and the detection limit that follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from tare.samples.describe.limits import Limit
from tare.stats.proportion import clopper_pearson
from tare.verdict.number_text import duration

SHARE = 0.8
"""Of repetitions, in which a delay must be detected."""
SUMMARIES = ("p50", "p95", "p99", "mean")
BETWEEN_RUNS = ("ks", "ad")
SINGLE_PAIRS = ("ks-pair", "ad-pair")
"""Of one run against one, taking requests for independent observations, as in Vinken (2022)."""
STATISTICS = (*SUMMARIES, *BETWEEN_RUNS)
"""What Tare itself detects by: only these have a limit for later verdicts."""
NAMES = {
    **{name: name for name in SUMMARIES},
    "ks": "KS between runs",
    "ad": "AD between runs",
    "ks-pair": "KS of one pair",
    "ad-pair": "AD of one pair",
}


@dataclass(frozen=True)
class Range:
    """The least, the mean and the greatest of some numbers."""

    least: float
    mean: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Range | None:
        """None where there are none."""
        if not values:
            return None
        return cls(min(values), fmean(values), max(values))


@dataclass(frozen=True)
class Step:
    """One delay by one statistic."""

    delay_ns: int
    detected: int
    repetitions: int
    """Those that had enough valid blocks; pairs of runs for a statistic of single pairs.

    None where the service refused the delay, or a run's summary was 0.
    """
    p: Range | None
    value: Range | None
    """The statistic itself: ns by which a summary differs, or a distance between two runs."""

    @property
    def share(self) -> float:
        return self.detected / self.repetitions if self.repetitions else 0.0

    def __str__(self) -> str:
        """The share and its interval, for a person."""
        low, high = self.interval
        return f"{self.detected} of {self.repetitions} ({low * 100:.0f}–{high * 100:.0f} %)"

    @property
    def interval(self) -> tuple[float, float]:
        """Of the share, 95 %, by Clopper and Pearson."""
        return clopper_pearson(self.detected, self.repetitions)


@dataclass(frozen=True)
class Detection:
    """What one statistic detects in one environment and span."""

    environment: str
    span: str
    statistic: str
    level_ns: float
    """The median p50 of the baseline's runs."""
    alpha: float
    steps: tuple[Step, ...]
    """By delay, from 0 on."""

    @property
    def alarmed(self) -> bool:
        """Whether it detects no delay at all more often than alpha allows: it means nothing."""
        return self.steps[0].interval[0] > self.alpha

    @property
    def measured(self) -> tuple[Step, ...]:
        """Of delays above 0, those of which there is a repetition."""
        return tuple(step for step in self.steps[1:] if step.repetitions)

    @property
    def limit_ns(self) -> int | None:
        """The least delay that it detects in 80 % of repetitions, as all larger delays.

        None where it is none of those that were measured.
        """
        limit = None
        for step in reversed(self.measured):
            if step.share < SHARE:
                break
            limit = step.delay_ns
        return None if self.alarmed else limit

    @property
    def at_limit(self) -> Step:
        """The step of the limit; without a limit, of the largest delay that was measured."""
        largest = (self.measured or self.steps)[-1]
        return next((step for step in self.steps if step.delay_ns == self.limit_ns), largest)

    @property
    def undetected_ns(self) -> int | None:
        """What a later verdict must bear in mind: the limit, or the largest delay measured.

        None for a statistic that raises alarms or measured no delay, and for a statistic
        that Tare does not judge by.
        """
        if self.alarmed or self.statistic not in STATISTICS or not self.measured:
            return None
        return self.at_limit.delay_ns

    @property
    def said(self) -> str:
        """What it comes to, for a person."""
        if self.alarmed:
            return "false alarms"
        if not self.measured:
            return "not measured"
        missing = ", ".join(duration(step.delay_ns) for step in self.steps if not step.repetitions)
        found = "not up to" if self.limit_ns is None else "from"
        more = f" (not measured: {missing})" if missing else ""
        return f"{found} {duration(self.at_limit.delay_ns)}{more}"

    def to_json(self) -> dict[str, Any]:
        """Stable keys; times in ns."""
        return {
            "environment": self.environment,
            "span": self.span,
            "statistic": self.statistic,
            "level_ns": self.level_ns,
            "limit_ns": self.limit_ns,
            "undetected_ns": self.undetected_ns,
            "alarmed": self.alarmed,
            "steps": [
                {
                    "delay_ns": step.delay_ns,
                    "detected": step.detected,
                    "repetitions": step.repetitions,
                    "share": step.share,
                    "interval": {"low": step.interval[0], "high": step.interval[1]},
                    "p": None if step.p is None else vars(step.p),
                    "value": None if step.value is None else vars(step.value),
                }
                for step in self.steps
            ],
        }


@dataclass(frozen=True)
class Calibration:
    """What all statistics detect of all requests of a plan."""

    name: str
    """Of the plan."""
    date: str
    machine: str
    """As the fingerprint in a manifest calls it."""
    version: str
    """Of Tare."""
    blocks: int
    """Of one repetition."""
    repetitions: int
    services: Mapping[str, str]
    """By request, the service that the limits hold for."""
    detections: Mapping[str, tuple[Detection, ...]]
    """By request."""

    def to_json(self) -> dict[str, Any]:
        """Stable keys; times in ns."""
        return {
            "name": self.name,
            "date": self.date,
            "machine": self.machine,
            "tare": self.version,
            "blocks": self.blocks,
            "repetitions": self.repetitions,
            "requests": {
                name: {
                    "service": self.services[name],
                    "detections": [detection.to_json() for detection in detections],
                }
                for name, detections in self.detections.items()
            },
        }

    @property
    def by_place(self) -> dict[str, list[Detection]]:
        """By what a person calls each request in its environment and span."""
        many = len(
            {
                (detection.environment, detection.span)
                for each in self.detections.values()
                for detection in each
            }
        )
        found: dict[str, list[Detection]] = {}
        for name, detections in self.detections.items():
            for detection in detections:
                where = f", {detection.environment}, {detection.span}" if many > 1 else ""
                found.setdefault(f"{name}{where}: {duration(detection.level_ns)}", []).append(
                    detection
                )
        return found

    @property
    def limits(self) -> list[Limit]:
        """What later verdicts need of it."""
        return [
            Limit(
                machine=self.machine,
                service=self.services[name],
                environment=detection.environment,
                span=detection.span,
                statistic=detection.statistic,
                undetected_ns=detection.undetected_ns,
                level_ns=detection.level_ns,
                blocks=self.blocks,
                repetitions=self.repetitions,
                shares={
                    str(step.delay_ns): step.share for step in detection.steps if step.repetitions
                },
                date=self.date,
                version=self.version,
            )
            for name, detections in self.detections.items()
            for detection in detections
            if detection.statistic in STATISTICS and (detection.alarmed or detection.measured)
        ]
