# SPDX-License-Identifier: Apache-2.0
"""Traces of both sides against each other: the parts of a request, and what requests call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tare.stats.fewest_runs import LEAST_PAIRED, LEAST_UNPAIRED
from tare.stats.interval import paired_difference, welch_difference
from tare.stats.step_down import paired, unpaired
from tare.verdict.evidence.estimate import by_block
from tare.verdict.judgement import LEVEL
from tare.verdict.number_text import change, count, listed, percent
from tare.verdict.traces import Change, MixWord, SpanPart, StructureShare, TraceComparison

if TYPE_CHECKING:
    from tare.samples.model import Call, Experiment, Part, Run, Traced
    from tare.stats.arrays import Array

RARE = 0.01
"""Structures with a smaller share on both sides are counted together."""
SHOWN = 3
"""At most this number of calls names a structure."""
NONE = 1e-9
"""A share that is rounding alone."""
OTHER = 0
USUAL = "with the usual calls"

Key = tuple[int, int]
"""A block and a place in it, of a run."""


@dataclass(frozen=True)
class _Sides:
    """The traces of each side's runs by key; paired runs have the same keys."""

    baseline: Mapping[Key, Traced]
    condition: Mapping[Key, Traced]
    paired: bool

    def table(self, values: Sequence[Callable[[Traced], float]]) -> tuple[Array, Array]:
        """The `values` (k) of the runs of both sides: (n, k) and (m, k)."""
        first, second = (
            np.array([[value(run) for value in values] for run in side.values()])
            for side in (self.baseline, self.condition)
        )
        return first, second

    def changes(self, values: Sequence[Callable[[Traced], float]]) -> list[Change]:
        """How each of `values` changed, with p-values adjusted for all of them."""
        first, second = self.table(values)
        enough = min(len(first), len(second)) >= 2
        p: Sequence[float | None] = [None] * len(values)
        if enough and values:
            found = paired(second - first) if self.paired else unpaired(first, second)
            p = found.tolist()
        return [
            replace(self._change(first[:, place], second[:, place]), p_adjusted=p[place])
            for place in range(len(values))
        ]

    def _change(self, first: Array, second: Array) -> Change:
        baseline, condition = float(first.mean()), float(second.mean())
        difference = (
            paired_difference(second - first) if self.paired else welch_difference(first, second)
        )
        bounds = (None, None) if difference is None else difference.interval(LEVEL)
        return Change(baseline, condition, condition - baseline, *bounds)


def compared_traces(experiment: Experiment, alarming: Collection[str]) -> Iterator[TraceComparison]:
    """Of each environment, condition and root span, those with most requests first.

    `alarming` are the environments whose control forbids verdicts.
    """
    roots = dict.fromkeys(root for _, root in experiment.traces)
    found = []
    for environment in dict.fromkeys(run.environment for run in experiment.runs):
        here = [run for run in experiment.runs if run.environment == environment]
        for condition in dict.fromkeys(run.condition for run in here):
            for root in roots if condition != experiment.baseline else ():
                sides = _sides(experiment, here, condition, root)
                if sides.baseline and sides.condition:
                    comparison = _compared(experiment, environment, condition, root, sides)
                    found.append(_forbidden(comparison) if environment in alarming else comparison)
    yield from sorted(found, key=lambda comparison: -sum(comparison.requests))


def _sides(experiment: Experiment, runs: Sequence[Run], condition: str, root: str) -> _Sides:
    ours, theirs = (
        {
            key: traced
            for key, run in by_block(
                [run for run in runs if run.condition == name and run.span == root]
            ).items()
            if (traced := experiment.traces.get((run.run, root))) is not None
        }
        for name in (experiment.baseline, condition)
    )
    if experiment.paired:
        both = sorted(ours.keys() & theirs.keys())
        ours, theirs = ({key: side[key] for key in both} for side in (ours, theirs))
    return _Sides(ours, theirs, experiment.paired)


def _compared(
    experiment: Experiment, environment: str, condition: str, root: str, sides: _Sides
) -> TraceComparison:
    every = (*sides.baseline.values(), *sides.condition.values())
    spans = list(dict.fromkeys(span for run in every for span in run.parts))
    (mean,) = sides.changes([lambda run: run.mean_ns])
    columns = [
        sides.changes([_of_part(span, value) for span in spans])
        for value in (
            lambda part: part.critical_ns,
            lambda part: part.self_ns,
            lambda part: part.calls,
        )
    ]
    parts = [SpanPart(*row) for row in zip(spans, *columns, strict=True)]
    structures = _structures(experiment, sides)
    verdict, reason = _mix(structures, parts, sides, experiment.budget, experiment.alpha)
    return TraceComparison(
        environment=environment,
        baseline=experiment.baseline,
        condition=condition,
        root=root,
        requests=(_requests(sides.baseline), _requests(sides.condition)),
        mean_ns=mean,
        parts=tuple(sorted(parts, key=lambda part: -abs(part.critical_ns.difference))),
        structures=structures,
        verdict=verdict,
        reason=reason,
        broken=(_broken(sides.baseline), _broken(sides.condition)),
    )


def _of_part(span: str, value: Callable[[Part], float]) -> Callable[[Traced], float]:
    return lambda run: value(run.parts[span]) if span in run.parts else 0.0


def _requests(side: Mapping[Key, Traced]) -> int:
    return sum(run.requests for run in side.values())


def _broken(side: Mapping[Key, Traced]) -> float:
    return max(run.broken for run in side.values())


def _structures(experiment: Experiment, sides: _Sides) -> tuple[StructureShare, ...]:
    """The share of each structure; rare structures are added up."""
    named = dict.fromkeys(
        structure
        for side in (sides.baseline, sides.condition)
        for run in side.values()
        for structure in run.structures
        if structure != OTHER
    )
    ours, theirs = (
        {
            structure: float(np.mean([_share(run, [structure]) for run in side.values()]))
            for structure in named
        }
        for side in (sides.baseline, sides.condition)
    )
    common = [structure for structure in named if max(ours[structure], theirs[structure]) >= RARE]
    common.sort(key=lambda structure: -(ours[structure] + theirs[structure]))
    usual = experiment.structures[max(named, key=ours.__getitem__)]
    values = [partial(_share, structures=(structure,)) for structure in common]
    texts = [
        _calls(experiment.structures[structure], usual, experiment.calls) for structure in common
    ]
    rest = partial(_rest, structures=common)
    if any(part.max() > NONE for part in sides.table([rest])):
        values.append(rest)
        texts.append("with rare calls")
    changes = sides.changes(values)
    return tuple(map(StructureShare, texts, changes))


def _share(run: Traced, structures: Sequence[int]) -> float:
    return sum(run.structures.get(structure, 0) for structure in structures) / run.requests


def _rest(run: Traced, structures: Sequence[int]) -> float:
    return 1 - _share(run, structures)


def _calls(own: frozenset[int], usual: frozenset[int], calls: Mapping[int, Call]) -> str:
    """The calls that are added and missing; calls inside of such a call are not named."""
    words = [
        f"{word} {listed([repr(name) for name in names], SHOWN)}"
        for word, names in (
            ("with", _outermost(own - usual, calls)),
            ("without", _outermost(usual - own, calls)),
        )
        if names
    ]
    return ", ".join(words) or USUAL


def _outermost(numbers: frozenset[int], calls: Mapping[int, Call]) -> list[str]:
    return sorted({calls[number].span for number in numbers if calls[number].caller not in numbers})


def _mix(
    structures: Sequence[StructureShare],
    parts: Sequence[SpanPart],
    sides: _Sides,
    budget: float,
    alpha: float,
) -> tuple[MixWord, str]:
    """Whether requests call other spans, or the same spans more or less often, and why."""
    least = LEAST_PAIRED if sides.paired else LEAST_UNPAIRED
    runs = min(len(sides.baseline), len(sides.condition))
    moved = [structure for structure in structures if _moved(structure.share, budget, alpha)]
    largest = _described(_largest(moved or structures))
    if runs < least:
        return (
            "inconclusive",
            f"{count(runs, 'run')} per condition; a verdict needs {least}: {largest}",
        )
    if moved:
        return "changed", largest
    frequencies = [(part.calls, budget * part.calls.larger) for part in parts]
    often = [
        part
        for part, (calls, limit) in zip(parts, frequencies, strict=True)
        if _moved(calls, limit, alpha)
    ]
    if often:
        return "changed", _called(max(often, key=lambda part: abs(part.calls.difference)))
    if not all(_inside(structure.share, budget) for structure in structures):
        return "inconclusive", f"neither a change nor its absence is shown: {largest}"
    unsure = [
        part
        for part, (calls, limit) in zip(parts, frequencies, strict=True)
        if calls.difference and not _inside(calls, limit)
    ]
    if unsure:
        largest = _called(max(unsure, key=lambda part: abs(part.calls.difference)))
        return "inconclusive", f"neither a change nor its absence is shown: {largest}"
    return "unchanged", f"every structure within {percent(budget, signed=False)} of requests"


def _called(part: SpanPart) -> str:
    before, after = part.calls.baseline, part.calls.condition
    return f"calls of '{part.span}' per request: {before:.2f} -> {after:.2f}"


def _largest(structures: Sequence[StructureShare]) -> StructureShare:
    """The structure whose share differs most: a structure with other calls, if there is one."""
    others = [structure for structure in structures if structure.calls != USUAL]
    return max(others or structures, key=lambda structure: abs(structure.share.difference))


def _moved(share: Change, budget: float, alpha: float) -> bool:
    if share.p_adjusted is None or share.low is None or share.high is None:
        return False
    excluded = share.low > 0 or share.high < 0
    return share.p_adjusted <= alpha and excluded and not _inside(share, budget)


def _inside(share: Change, budget: float) -> bool:
    return (
        share.low is not None
        and share.high is not None
        and -budget < share.low
        and share.high < budget
    )


def _described(structure: StructureShare) -> str:
    share = structure.share
    before, after = (percent(part, signed=False) for part in (share.baseline, share.condition))
    interval = ""
    if share.low is not None and share.high is not None:
        low, high = (change(bound, "share") for bound in (share.low, share.high))
        interval = f" ({low.partition(' ')[0]} to {high})"
    return f"requests {structure.calls}: {before} -> {after}{interval}"


def _forbidden(comparison: TraceComparison) -> TraceComparison:
    why = "the control of this environment found a difference where there is none"
    return replace(comparison, verdict="invalid", reason=why)
