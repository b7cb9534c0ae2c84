# SPDX-License-Identifier: Apache-2.0
"""The same requests from several ends of the warm-up on: what each run and span says from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tare.samples.engines import Described, Kept, describe_each, histogram_of
from tare.samples.model import REQUEST
from tare.samples.places import Group, settled
from tare.samples.steadiness import NOBODY, steadiness
from tare.samples.usable import zeros
from tare.stats.steady import Steadiness, common_cut

if TYPE_CHECKING:
    from ibis.expr.types import Table

    from tare.samples.model import Distances, Place

DECILES = tuple(tenth / 10 for tenth in range(1, 10))
SHAPE = (*DECILES, 0.95, 0.99, 0.995, 0.999, 1.0)
"""What is kept of a run; beyond p99 too few requests are left to be compared one by one."""
METRICS = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
KINDS = {
    "no steady state": "no steady state",
    "slowdown": "requests got slower",
    None: "too few requests to see a warm-up",
}
SHOWN = 3
STEPS = tuple(10**power for power in range(1, 10))
LEAST = 100
TWICE, HALF = "twice the warm-up", "half of the run"


@dataclass(frozen=True)
class Look:
    """Every run and span from one end of the warm-up on."""

    groups: Mapping[Group, Described]
    distances: Mapping[Place, Distances]
    ks_error: Mapping[Place, float] = field(default_factory=dict)
    """How far KS distances may be from the exact ones; empty where every request counts."""

    def summaries(self, group: Group) -> dict[str, float]:
        """`p50`, `p95`, `p99` and `mean` in ns; none where no request succeeded."""
        found = self.groups.get(group)
        if found is None or found.mean is None:
            return {}
        return {name: found.quantiles[at] for name, at in METRICS.items()} | {"mean": found.mean}

    def shape(self, group: Group) -> Mapping[float, float]:
        """Response times in ns by probability."""
        found = self.groups.get(group)
        return {} if found is None else found.quantiles


@dataclass(frozen=True)
class Looks:
    """How each run went, how many first requests of each place are left out, what remains says."""

    sizes: Mapping[Group, int]
    """Places of each run and span, the warm-up's too."""
    steadiness: Mapping[Group, Steadiness]
    cuts: Mapping[Place, int]
    first: Mapping[Group, int]
    """The cut of each run and span, for `settled`."""
    at_cut: Look
    others: Mapping[str, Look]
    resolution_ns: int = 1
    """The step in which latencies were recorded."""
    zeros: Mapping[Group, int] = field(default_factory=dict)
    """Successful requests that took no time, after the warm-up, where there are any."""

    def kind(self, group: Group) -> str | None:
        """How a run went; None where it is too short to tell."""
        found = self.steadiness.get(group)
        return None if found is None else found.kind

    def worth(self, group: Group) -> float | None:
        """How many independent requests a run is worth; None where it is too short to tell."""
        found = self.steadiness.get(group)
        return None if found is None else found.worth

    def told(self) -> tuple[str, ...]:
        """What a reader must know of it."""
        found = []
        for place, cut in self.cuts.items():
            if cut:
                where = "".join(f"{one}: " for one in place if one not in ("", REQUEST))
                found.append(
                    f"{where}warm-up: the first {cut:,} requests of every run are left out"
                )
        if errors := self.at_cut.ks_error:
            worst = sorted(errors, key=errors.__getitem__, reverse=True)[:SHOWN]
            within = ", ".join(f"{errors[one]:.2g}{_named(one)}" for one in worst)
            found.append(
                "so many requests are counted in bins of 0.14 %: distances between runs (KS) are"
                f" within {within} of the exact ones, quantiles within 0.2 %"
            )
        kinds = {group: self.kind(group) for group in self.sizes}
        for kind, said in KINDS.items():
            runs = [run for (run, _), its in kinds.items() if its == kind]
            if runs:
                shown = ", ".join(map(str, runs[:SHOWN]))
                more = f" and {len(runs) - SHOWN} more" if len(runs) > SHOWN else ""
                found.append(f"{said} in {len(runs)} of {len(kinds)} runs (run {shown}{more})")
        return tuple(found)


def _named(place: Place) -> str:
    words = " ".join(one for one in place if one not in ("", REQUEST))
    return words and f" ({words})"


def nothing() -> Looks:
    """What no samples say."""
    return Looks({}, {}, {}, {}, Look({}, {}), {})


def look(
    samples: Table,
    conditions: Mapping[int, Place],
    warm_up: int | None = None,
    turns: Mapping[str, Sequence[Sequence[int]]] = NOBODY,
    kept: Kept | None = None,
) -> Looks:
    """Looks at samples with `run`, `span`, `place` (0, 1 ... in time order), `latency_ns`, `ok`.

    `conditions` has the environment and the condition of each run. All runs of an environment and
    span have one end of the warm-up, a number of requests, so that whatever is compared there is
    compared alike: `warm_up`, or None for where all conditions have settled.
    `turns` are the runs that took turns, for `steadiness`. `kept` has the histograms of these
    samples, if there are any.
    """
    sizes, fine, least = _surveyed(samples)
    steady = steadiness(samples, sizes, turns)
    environments = {run: environment for run, (environment, _) in conditions.items()}
    cuts = _common_cuts(sizes, steady, conditions)
    if warm_up is not None:
        cuts = dict.fromkeys(cuts, warm_up)
    first = {(run, span): cuts[environments[run], span] for run, span in sizes}
    others = {HALF: {group: size // 2 for group, size in sizes.items()}}
    if any(first.values()):
        twice = {group: max(cut, min(2 * cut, sizes[group] // 2)) for group, cut in first.items()}
        others = {TWICE: twice} | others
    at_cut, *looks = _look(samples, environments, [first, *others.values()], kept)
    return Looks(
        sizes,
        steady,
        cuts,
        first,
        at_cut,
        dict(zip(others, looks, strict=True)),
        1 if fine else _resolution(_steps(samples)),
        zeros(settled(samples, first)) if 0 in least.values() else {},
    )


def first_settled(
    samples: Table,
    conditions: Mapping[int, Place],
    turns: Mapping[str, Sequence[Sequence[int]]] = NOBODY,
) -> dict[Group, int]:
    """The first request of each run and span that `look` counts, for `settled`."""
    sizes, _, _ = _surveyed(samples)
    cuts = _common_cuts(sizes, steadiness(samples, sizes, turns), conditions)
    return {(run, span): cuts[conditions[run][0], span] for run, span in sizes}


def _common_cuts(
    sizes: Mapping[Group, int],
    steady: Mapping[Group, Steadiness],
    conditions: Mapping[int, Place],
) -> dict[Place, int]:
    """How many first requests of each environment and span are left out of all of its runs."""
    places: dict[Place, list[Group]] = {}
    for group in sizes:
        places.setdefault((conditions[group[0]][0], group[1]), []).append(group)
    return {
        # However long some runs took to settle, half of the shortest is kept.
        place: min(_settled(groups, steady, conditions), min(sizes[one] for one in groups) // 2)
        for place, groups in places.items()
    }


def _settled(
    groups: Sequence[Group], steady: Mapping[Group, Steadiness], conditions: Mapping[int, Place]
) -> int:
    by_condition: dict[Place, list[Steadiness]] = {}
    for group in groups:
        if group in steady:
            by_condition.setdefault(conditions[group[0]], []).append(steady[group])
    return common_cut(by_condition.values())


def _look(
    samples: Table,
    environments: Mapping[int, str],
    begins: Sequence[Mapping[Group, int]],
    kept: Kept | None,
) -> list[Look]:
    """From each of the ends of the warm-up on, of which the first is the earliest."""
    groups: list[dict[Group, Described]] = [{} for _ in begins]
    distances: list[dict[Place, Distances]] = [{} for _ in begins]
    errors: list[dict[Place, float]] = [{} for _ in begins]
    for environment in dict.fromkeys(environments.values()):
        here = [run for run, its in environments.items() if its == environment]
        mine = samples
        if len(here) < len(environments):
            mine = samples.filter(samples.run.isin(here))
        count = histogram_of if kept is None else partial(kept.histogram, environment)
        for cut, found in enumerate(describe_each(mine, begins, SHAPE, count=count)):
            groups[cut] |= found.groups
            distances[cut] |= {(environment, span): one for span, one in found.distances.items()}
            errors[cut] |= {(environment, span): one for span, one in found.ks_error.items()}
    return [Look(*parts) for parts in zip(groups, distances, errors, strict=True)]


def _steps(samples: Table) -> list[dict[str, Any]]:
    """Of each run its latencies' `count`, `least` and `most`, and how many no step divides."""
    ok: Any = samples.ok
    value: Any = samples.latency_ns
    rows = samples.group_by("run").aggregate(
        count=value.count(where=ok),
        least=value.min(where=ok),
        most=value.max(where=ok),
        **{f"by_{step}": ((value % step) != 0).sum(where=ok) for step in STEPS},
    )
    return list(rows.to_pyarrow().to_pylist())


def _resolution(rows: Sequence[Mapping[str, Any]]) -> int:
    """The coarsest step of a run: the largest power of ten of ns that all its latencies divide by.

    Of fewer than a hundred, or of one value only, that may be chance: 1.
    """
    return max(
        (
            step
            for row in rows
            if row["count"] >= LEAST and row["least"] < row["most"]
            for step in STEPS
            if not row[f"by_{step}"]
        ),
        default=1,
    )


def _surveyed(samples: Table) -> tuple[dict[Group, int], bool, dict[Group, int | None]]:
    """Places of each run and span; whether every run has latencies finer than 10 ns, so that
    there is no step to look for by nine divisions a request; and the least latency of each."""
    by = ["run", "span"]
    ok: Any = samples.ok
    value: Any = samples.latency_ns
    rows = samples.group_by(by).aggregate(
        places=samples.place.max() + 1,
        fine=((value % 10) != 0).sum(where=ok),
        least=value.min(where=ok),
    )
    found = rows.order_by(by).to_pyarrow().to_pylist()
    fine = {row["run"] for row in found if row["fine"]}
    sizes = {(row["run"], row["span"]): row["places"] for row in found}
    least = {(row["run"], row["span"]): row["least"] for row in found}
    return sizes, fine == {run for run, _ in sizes}, least
