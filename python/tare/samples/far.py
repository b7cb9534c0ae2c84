# SPDX-License-Identifier: Apache-2.0
"""Requests that are so far from the others of their run that they may be of another unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tare.samples.model import Part
from tare.samples.places import Group, of_group

if TYPE_CHECKING:
    from ibis.expr.types import Table

TIMES = 30
"""Half of the way, in logarithms, to a unit a thousand times as large."""


def middle(quantiles: Mapping[float, float]) -> float:
    """What a run's requests are far from: the median, where that is not between two parts."""
    halves = quantiles[0.6] > TIMES * quantiles[0.4]
    return quantiles[0.4] if halves else quantiles[0.5]


def far(samples: Table, middles: Mapping[Group, float]) -> dict[Group, tuple[Part, ...]]:
    """Those above and those below of runs and spans with a middle; without any, they are absent."""
    import ibis

    whole = {group: round(one) for group, one in middles.items() if one >= 1}
    if not whole:
        return {}
    # What a constant leaves out needs no look for the median of its run.
    beyond = samples.latency_ns > TIMES * min(whole.values())
    below = samples.latency_ns * TIMES < max(whole.values())
    some = samples.filter(samples.ok & (samples.latency_ns > 0) & (beyond | below))
    some = some.mutate(middle=of_group(some, whole))
    value: Any = some.latency_ns
    # ClickHouse has no truth values, but 0 and 1.
    above: Any = (value > some.middle).cast("int8")
    there = some.filter(
        (some.middle > 0) & ((value > TIMES * some.middle) | (value * TIMES < some.middle))
    )
    # The engine may look at rows that the filter leaves out, and a logarithm of 0 is an error.
    level: Any = ibis.greatest(there.latency_ns, 1).log10()
    rows = there.group_by(["run", "span", above.name("above")]).aggregate(
        requests=there.count(), level=level.mean(), spread=level.std(how="pop")
    )
    found: dict[Group, tuple[Part, ...]] = {}
    for row in rows.order_by(["run", "span", "above"]).to_pyarrow().to_pylist():
        group = row["run"], row["span"]
        part = Part(row["requests"], row["level"], row["spread"])
        found[group] = (*found.get(group, ()), part)
    return found
