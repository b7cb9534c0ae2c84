# SPDX-License-Identifier: Apache-2.0
"""The same requests from several ends of the warm-up on: what each run and span says from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from tare.errors import InputError
from tare.samples.describe.steadiness import NOBODY, Course, classified, courses_of
from tare.samples.describe.survey import Survey, steps_of, surveyed
from tare.samples.describe.usable_rows import zeros
from tare.samples.engines import Described, StoredHistograms, describe_each, histogram_of
from tare.samples.engines.in_memory import RequestsInMemory, load
from tare.samples.model import MOST_SPANS, REQUEST, Beginning
from tare.samples.notes import Note
from tare.samples.sql.group_numbers import Group, of_runs, settled
from tare.stats.steady import Steadiness, common_share, drift

if TYPE_CHECKING:
    from tare.samples.model import Distances, SpanKey
    from tare.samples.sql.table import Table

DECILES = tuple(tenth / 10 for tenth in range(1, 10))
FEW = 0.01
SHAPE = (FEW, *DECILES, 0.95, 0.99, 0.995, 0.999, 1.0)
"""What is kept of a run; below p10 and beyond p99 too few requests are left to be compared."""
METRICS = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
KINDS: Mapping[str | None, Callable[[str], str]] = {
    "no steady state": lambda where: (
        f"no steady state{where}; use a longer warm-up, or find what changes"
    ),
    "slowdown": lambda where: f"requests got slower{where}; find what grows or fills up",
    None: lambda where: Note(f"too few requests to see a warm-up{where}"),
}
SHOWN = 3
TWICE, HALF = "twice the warm-up", "half of the run"


@dataclass(frozen=True)
class CutSummary:
    """Every run and span from one end of the warm-up on."""

    groups: Mapping[Group, Described]
    distances: Mapping[SpanKey, Distances]
    ks_error: Mapping[SpanKey, float] = field(default_factory=dict)
    """How far KS distances may be from the exact distances; empty where every request counts."""
    drifts: Mapping[Group, float] = field(default_factory=dict)
    """How much the level still falls, in logarithms: `tare.stats.steady.drift`."""

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
class CutSummaries:
    """How each run went, how many first requests of each place are left out, what remains says."""

    sizes: Mapping[Group, int]
    """Places of each run and span, the warm-up's too."""
    steadiness: Mapping[Group, Steadiness]
    cuts: Mapping[SpanKey, int]
    """The most requests that are left out of a run of an environment and span."""
    first: Mapping[Group, int]
    """The cut of each run and span, for `settled`."""
    at_cut: CutSummary
    others: Mapping[str, CutSummary]
    steps: Mapping[Group, int] = field(default_factory=dict)
    """The step in ns of the latencies of a run and span, where it is not 1: to which they were
    rounded, or the tick of their clock."""
    zeros: Mapping[Group, int] = field(default_factory=dict)
    """Successful requests that took no time, after the warm-up, where there are any."""
    whole: Mapping[Group, tuple[int, float]] = field(default_factory=dict)
    """Successful requests of each run and span, and their mean in ns, the warm-up's too."""

    def kind(self, group: Group) -> str | None:
        """How a run went; None where it is too short to tell."""
        found = self.steadiness.get(group)
        return None if found is None else found.kind

    def worth(self, group: Group) -> float | None:
        """How many independent requests a run is worth; None where it is too short to tell."""
        found = self.steadiness.get(group)
        return None if found is None else found.worth

    def beginning(self, group: Group) -> Beginning | None:
        """The warm-up of a run and span; None where there is none, or it was asked for."""
        kept = self.at_cut.groups.get(group)
        if group not in self.whole or kept is None or kept.mean is None:
            return None
        (answered, mean), rest = self.whole[group], kept.requests - kept.errors
        if answered <= rest:
            return None
        left_out = (answered * mean - rest * kept.mean) / (answered - rest)
        return Beginning(1 - rest / answered, left_out)

    def told(self) -> tuple[str, ...]:
        """What a reader must know of it."""
        found: list[str] = []
        for place, cut in self.cuts.items():
            if cut:
                where = "".join(f"{name}: " for name in place if name not in ("", REQUEST))
                what = f"the first {cut:,} requests {self._of(place, cut)}"
                found.append(Note(f"{where}warm-up: {what}"))
        if errors := self.at_cut.ks_error:
            worst = sorted(errors, key=errors.__getitem__, reverse=True)[:SHOWN]
            within = ", ".join(f"{errors[key]:.2g}{_named(key)}" for key in worst)
            found.append(
                Note(
                    "because of their number, requests are counted in bins of 0.14 %: distances"
                    f" between runs (KS) are within {within} of the exact distances, quantiles"
                    " within 0.2 %"
                )
            )
        kinds = {group: self.kind(group) for group in self.sizes}
        for kind, line in KINDS.items():
            runs = [run for (run, _), its in kinds.items() if its == kind]
            if runs:
                shown = ", ".join(map(str, runs[:SHOWN]))
                more = f" and {len(runs) - SHOWN} more" if len(runs) > SHOWN else ""
                found.append(line(f" in {len(runs)} of {len(kinds)} runs (run {shown}{more})"))
        return tuple(found)

    def _of(self, place: SpanKey, cut: int) -> str:
        """Which runs lose `cut` requests, and what the others lose."""
        sizes = {self.sizes[g] for g, first in self.first.items() if g[1] == place[1] and first}
        if len(sizes) < 2:
            return "of every run are left out"
        share = cut / max(sizes)
        return f"of the longest run, {share:.0%} of every run, are left out"


def _named(place: SpanKey) -> str:
    words = " ".join(name for name in place if name not in ("", REQUEST))
    return words and f" ({words})"


def nothing() -> CutSummaries:
    """What no samples say."""
    return CutSummaries({}, {}, {}, {}, CutSummary({}, {}), {})


def look(
    samples: Table,
    conditions: Mapping[int, SpanKey],
    warm_up: int | None = None,
    turns: Mapping[str, Sequence[Sequence[int]]] = NOBODY,
    kept: StoredHistograms | None = None,
) -> CutSummaries:
    """Looks at samples with `run`, `span`, `place` (0, 1 ... in time order), `latency_ns`, `ok`.

    `conditions` has the environment and the condition of each run. All runs of an environment and
    span have one end of the warm-up, a number of requests, so that whatever is compared there is
    compared alike: `warm_up`, or None for where all conditions have settled.
    `turns` are the runs that took turns, for `steadiness`. `kept` has the histograms of these
    samples, if there are any.
    """
    loaded = load(samples)
    survey = surveyed(samples, loaded)
    sizes = survey.sizes
    if (spans := len({span for _, span in sizes})) > MOST_SPANS:
        raise InputError(
            f"the samples have {spans:,} spans, and at most {MOST_SPANS:,} are compared; "
            "is the column of spans the right one?"
        )
    courses = courses_of(samples, sizes, turns, loaded)
    steady = classified(courses)
    environments = {run: environment for run, (environment, _) in conditions.items()}
    first = dict.fromkeys(sizes, warm_up) if warm_up is not None else None
    first = first or _first(sizes, steady, conditions)
    cuts: dict[SpanKey, int] = {}
    for (run, span), cut in first.items():
        place = environments[run], span
        cuts[place] = max(cuts.get(place, 0), cut)
    steps = steps_of(samples, survey, loaded)
    others = {HALF: {group: size // 2 for group, size in sizes.items()}}
    if any(first.values()):
        twice = {group: max(cut, min(2 * cut, sizes[group] // 2)) for group, cut in first.items()}
        others = {TWICE: twice} | others
    begins = [first, *others.values()]
    at_cut, *looks = _look(samples, environments, begins, kept, steps, courses, survey, loaded)
    return CutSummaries(
        sizes,
        steady,
        cuts,
        first,
        at_cut,
        dict(zip(others, looks, strict=True)),
        steps,
        zeros(settled(samples, first)) if survey.has_zeros else {},
        survey.whole if warm_up is None else {},
    )


def first_settled(
    samples: Table,
    conditions: Mapping[int, SpanKey],
    turns: Mapping[str, Sequence[Sequence[int]]] = NOBODY,
) -> dict[Group, int]:
    """The first request of each run and span that `look` counts, for `settled`."""
    loaded = load(samples)
    sizes = surveyed(samples, loaded).sizes
    return _first(sizes, classified(courses_of(samples, sizes, turns, loaded)), conditions)


def _first(
    sizes: Mapping[Group, int],
    steady: Mapping[Group, Steadiness],
    conditions: Mapping[int, SpanKey],
) -> dict[Group, int]:
    """How many first requests of each run and span are left out: a share that all runs of its
    environment and span have in common."""
    places: dict[SpanKey, list[Group]] = {}
    for group in sizes:
        places.setdefault((conditions[group[0]][0], group[1]), []).append(group)
    found: dict[Group, int] = {}
    for groups in places.values():
        by_condition: dict[SpanKey, list[Steadiness]] = {}
        for group in groups:
            if group in steady:
                by_condition.setdefault(conditions[group[0]], []).append(steady[group])
        share = common_share(by_condition.values())
        found |= {group: round(share * sizes[group]) for group in groups}
    return found


def _look(  # noqa: PLR0917 - private, and called once
    samples: Table,
    environments: Mapping[int, str],
    begins: Sequence[Mapping[Group, int]],
    kept: StoredHistograms | None,
    steps: Mapping[Group, int],
    courses: Mapping[Group, Course],
    survey: Survey,
    loaded: RequestsInMemory | None,
) -> list[CutSummary]:
    """From each of the ends of the warm-up on, of which the first is the earliest."""
    groups: list[dict[Group, Described]] = [{} for _ in begins]
    distances: list[dict[SpanKey, Distances]] = [{} for _ in begins]
    errors: list[dict[SpanKey, float]] = [{} for _ in begins]
    for environment in dict.fromkeys(environments.values()):
        here = [run for run, its in environments.items() if its == environment]
        mine = samples
        if len(here) < len(environments):
            mine = of_runs(samples, here)
        count = histogram_of if kept is None else partial(kept.histogram, environment)
        requests = sum(rows for (run, _), rows in survey.rows.items() if run in here)
        described = describe_each(
            mine,
            begins,
            SHAPE,
            count=count,
            steps=steps,
            rows=requests,
            extent=survey.extent(here),
            loaded=loaded,
        )
        for cut, found in enumerate(described):
            groups[cut] |= found.groups
            distances[cut] |= {
                (environment, span): between for span, between in found.distances.items()
            }
            errors[cut] |= {(environment, span): error for span, error in found.ks_error.items()}
    drifts = [_drifts(courses, begin) for begin in begins]
    return [CutSummary(*parts) for parts in zip(groups, distances, errors, drifts, strict=True)]


def _drifts(courses: Mapping[Group, Course], begin: Mapping[Group, int]) -> dict[Group, float]:
    found = {
        group: drift(course.batches, course.edges, begin.get(group, 0))
        for group, course in courses.items()
    }
    return {group: value for group, value in found.items() if value is not None}
