# SPDX-License-Identifier: Apache-2.0
"""Why, in one plain sentence for a person at three in the morning; no p-values."""

from __future__ import annotations

from math import expm1

from tare.stats.quantile import LEAST_BEYOND
from tare.verdict.evidence import Evidence
from tare.verdict.words import count, duration, percent

SUBJECTS = {
    "p50": "the median",
    "mean": "the mean",
    "cpu_service": "the service's CPU time a request",
}
SHOWN = 2
MEDIAN = 0.5
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
    needed = evidence.runs_needed or evidence.least
    return (
        f"{_runs(evidence, evidence.runs)} cannot tell a change from chance between runs:"
        f" {needed} are needed, {needed - evidence.runs} more{_seen(evidence)}."
    )


def thin_tail(evidence: Evidence) -> str:
    """That too few requests decide a quantile."""
    return (
        f"runs have too few independent requests for {evidence.metric}: fewer than"
        f" {LEAST_BEYOND} are beyond it; record more requests, or compare by a lower percentile."
    )


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
        f" less than {_bound(evidence)}, over {_runs(evidence, evidence.runs)}"
        f"{_shown_up_to(evidence)}{_cpu(evidence)}."
    )


def _shown_up_to(evidence: Evidence) -> str:
    """Up to which quantile that holds, and the first for which it is not shown."""
    shift = () if evidence.shape is None else evidence.shape.shift
    above = [one for one in shift if one.q >= MEDIAN]
    unshown = next((one for one in above if not one.inside), None)
    shown = [one.q for one in above if unshown is None or one.q < unshown.q]
    if not shown:
        return ""
    upto = f"; unchanged up to {_quantile(shown[-1])}"
    if unshown is None:
        return upto
    band = f"{percent(unshown.low)} to {percent(unshown.high)}"
    return f"{upto}; {_quantile(unshown.q)} {band}: not shown"


def _quantile(q: float) -> str:
    return f"p{100 * q:g}"


def shape_changed(evidence: Evidence) -> str:
    """Which other part of the distribution moved."""
    most = sorted(evidence.moved, key=lambda one: -abs(one.relative))[:SHOWN]
    moved = " and ".join(
        f"{_quantile(one.q)} by {percent(one.relative)} ({percent(one.low)} to {percent(one.high)})"
        for one in sorted(most, key=lambda one: one.q)
    )
    beside = f"stays within {_bound(evidence)}" if evidence.equivalent else "shows no clear change"
    return f"{_subject(evidence)} {beside}, yet the distribution moved: {moved}."


def too_short(evidence: Evidence) -> str:
    """That what is left of a warm-up may be all of the difference."""
    return (
        f"{_subject(evidence)} is {_effect(evidence)}, but runs of '{evidence.condition}' and"
        f" '{evidence.baseline}' have different lengths and their latency still drifts, which adds"
        f" up to {percent(expm1(evidence.systematic.high), signed=False)}: they are too short to"
        " show a steady state; warm up for longer, or record more requests."
    )


def too_rounded(evidence: Evidence) -> str:
    """That how times were rounded may be all of the difference."""
    return (
        f"{_subject(evidence)} is {_effect(evidence)}, but times were rounded to steps of"
        f" {percent(evidence.step, signed=False)} of it, in a direction that the file does not"
        " state: record times with more digits."
    )


def not_enough(evidence: Evidence) -> str:
    """What is not sure, and how many runs would make it so."""
    seen = f"{_subject(evidence)} is {_effect(evidence)} ({_range(evidence)})"
    least = "" if evidence.mde is None else f"; these runs find changes from {_mde(evidence)} on"
    return f"{seen}, {_unsure(evidence)}{least}; {_more(evidence)}."


def _unsure(evidence: Evidence) -> str:
    """What decided that nothing is decided."""
    if evidence.excludes_zero and not evidence.significant:
        return "which chance may do to one of the comparisons that are judged together"
    if abs(evidence.relative or 0) > evidence.threshold:
        return "and the runs scatter too much to exclude that there is no change"
    return f"and the runs scatter too much to exclude a change beyond {_bound(evidence)}"


def _more(evidence: Evidence) -> str:
    """How many runs it takes, and what they would show."""
    what = (
        "see a change of this size"
        if evidence.runs_show == "difference"
        else f"show that it is within {_bound(evidence)}"
    )
    if evidence.runs_needed is None:
        return f"no practical number of runs would {what}"
    more = evidence.runs_needed - evidence.runs
    kind = "blocks" if evidence.paired else "runs per condition"
    if more <= 0:
        return f"{evidence.runs_needed} {kind} {what} in 4 of 5 experiments, not in this one"
    return f"about {evidence.runs_needed} {kind} ({more} more) would {what}"


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
    return f"{count(number, 'run')} per condition"


def _seen(evidence: Evidence) -> str:
    if evidence.relative is None:
        return ""
    return f"; seen so far: {_subject(evidence, start=False)} {_effect(evidence)}"


def _cpu(evidence: Evidence) -> str:
    cpu = evidence.cpu
    if cpu is None or not cpu.significant or cpu.relative is None:
        return ""
    return f"; the service's CPU time a request {percent(cpu.relative)}"
