# SPDX-License-Identifier: Apache-2.0
"""What a comparison needs of samples: each run's numbers, the distances between runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tare.samples.model import Distances
from tare.samples.sql.group_numbers import Group


@dataclass(frozen=True)
class Described:
    """One span of one run."""

    requests: int
    errors: int
    mean: float | None
    """Of the latencies of successful requests, in ns; None without any."""
    quantiles: Mapping[float, float] = field(default_factory=dict)
    """Of the same, by probability; empty without any."""


@dataclass(frozen=True)
class Description:
    """All spans of all runs of a table of samples."""

    groups: Mapping[Group, Described]
    distances: Mapping[str, Distances]
    """By span, where at least two runs have successful requests."""
    exact: bool = True
    """Computed from every single request; else from bins, which quantiles may miss by 0.2 %."""
    ks_error: Mapping[str, float] = field(default_factory=dict)
    """By span how far a Kolmogorov-Smirnov statistic may at most be from that of every single
    request; empty where it is that."""
