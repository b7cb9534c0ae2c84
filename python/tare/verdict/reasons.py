# SPDX-License-Identifier: Apache-2.0
"""Why, in one plain sentence for a person at three in the morning; no p-values."""

from __future__ import annotations

from tare.verdict.evidence import Evidence
from tare.verdict.words import count, duration, percent

SUBJECTS = {
    "p50": "the median",
    "mean": "the mean",
    "cpu_service": "the service's CPU time a request",
}
SHOWN = 2
THE_SAME = 0.0001
"""Relative differences below this are not worth a direction."""
NO_NUMBER = "no practical number of runs would tell"


def invalid(evidence: Evidence) -> str:
    """Which runs do not count, and what is left."""
    shown = "; ".join(evidence.invalid[:SHOWN])
    more = len(evidence.invalid) - SHOWN
    tail = f"; and {more} more" if more > 0 else ""
    left = f"{_runs(evidence, evidence.runs)} left of {evidence.planned}"
    return f"{count(len(evidence.invalid), 'run')} failed ({shown}{tail}), so there are {left}."


def control(evidence: Evidence) -> str:
    """That even the baseline differs from itself."""
    assert evidence.control is not None
    what = SUBJECTS.get(evidence.control.metric, evidence.control.metric)
    return (
        f"the baseline differs from itself: {what} of the hidden second one by"
        f" {percent(evidence.control.relative)}, so these runs tell nothing; look for what"
        " disturbed the machine, and run again."
    )


def unsteady(evidence: Evidence) -> str:
    """That there is nothing to summarise."""
    return (
        f"no run of '{evidence.baseline}' or '{evidence.condition}' came to a steady state: warm up"
        " for longer, or look for what changes under way."
    )


def by_clock(evidence: Evidence) -> str:
    """Clocks that say more or less than what was found."""
    return (
        f"the clocks may be off by {percent(evidence.clock_error, signed=False)} of the baseline,"
        f" and {_subject(evidence, start=False)} is {_effect(evidence)}: set them better, or"
        " take begin and end of a span from one clock."
    )


def by_load(evidence: Evidence) -> str:
    """That it is not known whether the span or its load made the difference."""
    assert evidence.load is not None
    arrivals, others = percent(evidence.load.arrivals), percent(evidence.load.others)
    return (
        f"'{evidence.condition}' had another load of '{evidence.span}', {arrivals} a second and"
        f" {others} of them under way at a time: give all conditions a rate that each can bear, or"
        " measure this service by itself."
    )


def holes(evidence: Evidence) -> str:
    """Which runs are missing."""
    shown = ", ".join(evidence.holes[:SHOWN])
    more = len(evidence.holes) - SHOWN
    tail = f" and {more} more" if more > 0 else ""
    return (
        f"nothing is there of {shown}{tail}, and nothing says why: the others may be the better"
        " ones; finish it with 'tare run --resume', or give all runs of every block."
    )


def lopsided(evidence: Evidence) -> str:
    """That what failed depends on the condition, and so does what is left."""
    baseline, condition = (
        f"{failed} of {count(whole, 'run')} of '{name}'"
        for failed, whole, name in zip(
            evidence.failed,
            evidence.recorded,
            (evidence.baseline, evidence.condition),
            strict=True,
        )
    )
    return (
        f"{condition} failed and {baseline}, so those that are left may be the better ones: look"
        " into why they failed, and run again."
    )


def flipped(evidence: Evidence) -> str:
    """Which other cut tells what else."""
    assert evidence.flipped is not None
    other = evidence.flipped
    return (
        f"{_subject(evidence)} is {_effect(evidence)} ({_range(evidence)}), but"
        f" {percent(other.relative or 0)} with {other.name} left out: what is found depends on the"
        " warm-up; warm up for longer."
    )


def too_coarse(evidence: Evidence) -> str:
    """Ratios of zero do not exist."""
    return f"{_subject(evidence)} of a run is 0: the clock of its source is too coarse to compare."


def constant(evidence: Evidence) -> str:
    """Nothing varies, which no service does."""
    return (
        "the requests of a run took exactly as long as each other, or there is one alone"
        f" ({_subject(evidence, start=False)} {_effect(evidence)}): its source records too"
        " coarsely, or not what was asked."
    )


def outlier(evidence: Evidence) -> str:
    """One request is no mean."""
    return (
        f"one request alone is {percent(evidence.outlier, signed=False)} of a run's mean: look for"
        " what stopped it, or compare by a percentile."
    )


def by_slowest(evidence: Evidence) -> str:
    """Ten requests are no mean either."""
    return (
        f"{_subject(evidence)} is {_effect(evidence)}, and without the slowest ten requests of a"
        f" run it differs by {percent(evidence.body or 0)}: look for what stopped these, or compare"
        " by a percentile."
    )


def too_few_runs(evidence: Evidence) -> str:
    """How many runs there are and how many it takes."""
    cannot = f"{_runs(evidence, evidence.runs)} cannot tell a change from chance between runs"
    if evidence.runs_needed is None:
        return f"{cannot}, and {NO_NUMBER}{_seen(evidence)}."
    more = evidence.runs_needed - evidence.runs
    return f"{cannot}: {evidence.runs_needed} are needed, {more} more{_seen(evidence)}."


def changed(evidence: Evidence) -> str:
    """How much, how sure, and over what."""
    return (
        f"{_subject(evidence)} is {_effect(evidence)} ({_range(evidence)}) over"
        f" {_runs(evidence, evidence.runs)}; the budget is"
        f" {percent(evidence.budget, signed=False)}{_cpu(evidence)}."
    )


def unchanged(evidence: Evidence) -> str:
    """That the difference is too small to matter, and how large it can be."""
    return (
        f"{_subject(evidence)} differs by {percent(evidence.relative or 0)} ({_range(evidence)}),"
        f" less than {_bound(evidence)}, over {_runs(evidence, evidence.runs)}{_cpu(evidence)}."
    )


def shape_changed(evidence: Evidence) -> str:
    """Which other part of the distribution moved."""
    most = sorted(evidence.moved, key=lambda one: -abs(one.relative))[:SHOWN]
    moved = " and ".join(
        f"p{100 * one.q:g} by {percent(one.relative)} ({percent(one.low)} to {percent(one.high)})"
        for one in sorted(most, key=lambda one: one.q)
    )
    beside = f"stays within {_bound(evidence)}" if evidence.equivalent else "shows no clear change"
    return f"{_subject(evidence)} {beside}, yet the distribution moved: {moved}."


def part_of(evidence: Evidence) -> str:
    """That the whole does not differ."""
    return (
        f"{_subject(evidence)} is {_effect(evidence)} ({_range(evidence)}), but a part is judged"
        f" only where the whole differs, and '{evidence.around}' does not surely."
    )


def not_enough(evidence: Evidence) -> str:
    """What could have been seen, and how many runs would see the budget."""
    seen = (
        f"{_subject(evidence)} is {_effect(evidence)} ({_range(evidence)}):"
        f" neither a clear change nor clearly within {_bound(evidence)}"
    )
    least = "" if evidence.mde is None else f"; these runs see changes from {_mde(evidence)}"
    if evidence.runs_needed is None:
        return f"{seen}{least}; {NO_NUMBER}."
    more = evidence.runs_needed - evidence.runs
    if more <= 0:
        return f"{seen}{least}; the effect lies near the budget's edge, where only luck decides."
    kind = "blocks" if evidence.paired else "runs a condition"
    return f"{seen}{least}; up to about {evidence.runs_needed} {kind} are needed, {more} more."


def _subject(evidence: Evidence, start: bool = True) -> str:
    name = SUBJECTS.get(evidence.metric, evidence.metric)
    return name[0].upper() + name[1:] if start and name in SUBJECTS.values() else name


def _effect(evidence: Evidence) -> str:
    relative, absolute = evidence.relative or 0.0, evidence.absolute_ns or 0.0
    if abs(relative) < THE_SAME:
        return f"the same to {percent(THE_SAME, signed=False)}"
    word = "higher" if relative > 0 else "lower"
    return f"{percent(abs(relative), signed=False)} ({duration(abs(absolute))}) {word}"


def _range(evidence: Evidence) -> str:
    if evidence.low is None or evidence.high is None:
        return "no interval"
    return f"{percent(evidence.low)} to {percent(evidence.high)}"


def _bound(evidence: Evidence) -> str:
    """The budget, or what is judged by in its place."""
    if evidence.threshold <= evidence.budget:
        return f"the budget of {percent(evidence.budget, signed=False)}"
    return f"the {percent(evidence.threshold, signed=False)} that can be told here"


def _mde(evidence: Evidence) -> str:
    return percent(evidence.mde or 0, signed=False)


def _runs(evidence: Evidence, number: int) -> str:
    if evidence.paired:
        return count(number, "block")
    return f"{count(number, 'run')} a condition"


def _seen(evidence: Evidence) -> str:
    if evidence.relative is None:
        return ""
    return f"; seen so far: {_subject(evidence, start=False)} {_effect(evidence)}"


def _cpu(evidence: Evidence) -> str:
    cpu = evidence.cpu
    if cpu is None or not cpu.significant or cpu.relative is None:
        return ""
    return f"; the service's CPU time a request {percent(cpu.relative)}"
