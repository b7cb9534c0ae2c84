# SPDX-License-Identifier: Apache-2.0
"""The slowest requests of each condition, and what machine and service did during each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tare.report.result.distributions import ConditionKey
from tare.samples.describe.metrics import ALWAYS
from tare.samples.sql.engine import rows_of
from tare.samples.sql.group_numbers import of_runs

if TYPE_CHECKING:
    from tare.samples.sql.table import Table

REQUESTS = 20


@dataclass(frozen=True)
class Slow:
    """One request, from when it should have started to its end, in ns since the Unix epoch."""

    run: int
    due_ns: int
    end_ns: int

    @property
    def latency_ns(self) -> int:
        return self.end_ns - self.due_ns


def slowest(
    counted: "Table", samples: "Table", places: Mapping[int, ConditionKey]
) -> dict[ConditionKey, Sequence[Slow]]:
    """The slowest requests of each place in `places`, which has the place of each run.

    `counted` are requests of one span as `distributions.kept` has them, without the warm-up, and
    `samples` those of `Result.samples`, which must have start times.
    """
    if "start_ns" not in samples.columns:
        return {}
    runs: dict[ConditionKey, list[int]] = {}
    for run, place in places.items():
        runs.setdefault(place, []).append(run)
    return {place: found for place, of in runs.items() if (found := _slowest(counted, samples, of))}


def _slowest(counted: "Table", samples: "Table", runs: Sequence[int]) -> list[Slow]:
    mine = of_runs(counted, runs)
    speed: Any = 0 - mine.latency_ns
    ordered = mine.filter(mine.start_ns.between(0, ALWAYS)).mutate(speed=speed)
    rows = rows_of(ordered.order_by("speed", "run", "start_ns").limit(REQUESTS))
    waits = _waits(samples, rows)
    found = []
    for row in rows:
        key = row["run"], row["start_ns"], row["latency_ns"]
        due = row["start_ns"] - waits.get(key, 0)
        found.append(Slow(row["run"], due, due + row["latency_ns"]))
    return found


def _waits(samples: "Table", rows: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int, int], int]:
    """How long requests waited to be sent, by run, start and latency."""
    if "intended_ns" not in samples.columns or not rows:
        return {}
    mine = of_runs(samples, {row["run"] for row in rows})
    chosen = mine.filter(mine.start_ns.isin([row["start_ns"] for row in rows]))
    wait: Any = chosen.latency_ns - chosen.duration_ns
    found = rows_of(chosen.select("run", "start_ns", "latency_ns", wait=wait))
    return {(row["run"], row["start_ns"], row["latency_ns"]): row["wait"] or 0 for row in found}
