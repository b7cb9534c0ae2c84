# SPDX-License-Identifier: Apache-2.0
"""What every reader of samples gives and every judge takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

REQUEST = "request"
"""The span that is a whole request."""


@dataclass(frozen=True)
class Run:
    """One run of one condition: its summaries, never its requests, are compared.

    `summaries` maps a metric (`p50`, `p95`, `p99`, `mean` in nanoseconds of response time,
    `cpu_service` in nanoseconds of CPU time a request) to its value.
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
    """Share of the slices left out because something else had the CPU."""
    ended_ns: int | None = None
    endpoint: str | None = None
    """The file or URL that the run's requests came from or went to."""


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
