# SPDX-License-Identifier: Apache-2.0
"""Why, in one plain sentence for a person at three in the morning; no p-values."""

from __future__ import annotations

from math import expm1

from tare.samples.model import ERROR_RATE, THROUGHPUT
from tare.stats.quantile import LEAST_BEYOND
from tare.verdict.evidence.evidence import CPU, Evidence
from tare.verdict.number_text import change, count, listed, percent, value

SUBJECTS = {
    "p50": "the median",
    "mean": "the mean",
    THROUGHPUT: "the throughput",
    ERROR_RATE: "the error rate",
    CPU: "the CPU time per request of service and layers",
}
LIMITS = {
    "warm-up": "warm-up that is left may add most of this range: record equally many requests in"
    " all runs, and warm up for longer",
    "rounding": "rounded times add most of this range: record times with more digits",
}
SHOWN = 2
MEDIAN = 0.5
USELESS = 10.0
"""A detectable difference of ten times the baseline helps nobody."""
THE_SAME = 0.0001
"""Relative differences below this are not worth a direction."""


def lost(evidence: Evidence) -> str:
    """Which runs do not count, and what is left."""
    return (
        f"{count(sum(evidence.failed), 'run')} failed ({listed(evidence.invalid, SHOWN, '; ')}),"
        f" which leaves {_runs(evidence, evidence.runs)} of {evidence.planned}."
    )


def control(evidence: Evidence) -> str:
    """That even the baseline differs from itself."""
    assert evidence.control is not None
    what = SUBJECTS.get(evidence.control.metric, evidence.control.metric)
    return (
        f"this experiment cannot be trusted: the baseline differs from its own control, {what} by"
        f" {percent(evidence.control.relative)}. Find what disturbed the machine and run again."
    )


def by_clock(evidence: Evidence) -> str:
    """Clocks that may be off by more than what was found."""
    return (
        f"the clocks may be off by {percent(evidence.clock_error, signed=False)} of the baseline,"
        f" and {_subject(evidence, start=False)} is {_effect(evidence)}: synchronise them better,"
        " or record both ends of a span with the same clock."
    )


def by_load(evidence: Evidence) -> str:
    """That it is not known whether the span or its load made the difference."""
    assert evidence.load is not None
    arrivals, others = percent(evidence.load.arrivals), percent(evidence.load.others)
    return (
        f"'{evidence.condition}' had another load of '{evidence.span}': {arrivals} arrivals per"
        f" second, {others} concurrent. Use a rate that all conditions can serve, or"
        " measure this service alone."
    )


def own_load(evidence: Evidence) -> str:
    """That requests call the span more or less often, which is a part of the effect; or nothing."""
    if evidence.load is None or evidence.load.calls is None:
        return ""
    before, after = evidence.load.calls
    return (
        f" A request makes {after:.2f} of these calls instead of {before:.2f}: the effect includes"
        " the load that the application itself makes."
    )


def biased(evidence: Evidence) -> str:
    """That the runs that are left may be the better runs."""
    if evidence.holes:
        have = "has" if len(evidence.holes) == 1 else "have"
        return (
            f"{listed(evidence.holes, SHOWN)} {have} no data and no recorded failure, so the"
            " remaining runs may be a biased sample: finish the experiment with 'tare run"
            " --resume', or give all runs of every block."
        )
    if not evidence.lopsided:
        more, other = evidence.condition, evidence.baseline
        if evidence.failing < 0:
            more, other = other, more
        return (
            f"'{more}' has {percent(abs(evidence.failing), signed=False)} more failed requests than"
            f" '{other}'. These may be its slowest requests, and they have no latency: compare"
            f" error_rate, or a lower percentile than {evidence.metric}."
        )
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
        f"{condition} failed and {baseline}, so the remaining runs may be a biased sample: find out"
        " why they failed and run again."
    )


def flipped(evidence: Evidence) -> str:
    """Which other cut has which other effect."""
    assert evidence.flipped is not None
    other = evidence.flipped
    differs = other.verdict == "shape-changed"
    seen = "the distribution moved" if differs else change(other.relative or 0, evidence.unit)
    return (
        f"{_subject(evidence)} is {_effect(evidence)}{_range(evidence)}, but {seen} with"
        f" {other.name} left out ({other.verdict}): the result depends on the warm-up; warm up for"
        " longer, or record more requests."
    )


def stalled(evidence: Evidence) -> str:
    """That other programs, not the service, made the slowest requests."""
    return (
        "other programs used the CPU while load or service waited for it, in more than half of the"
        f" load of {evidence.disturbed} of {sum(evidence.recorded)} runs:"
        f" {_subject(evidence, start=False)} would measure them. Stop other programs, or give"
        " service and load their own CPUs, and run again."
    )


def too_coarse(evidence: Evidence) -> str:
    """That the source does not record differences of times."""
    if evidence.zero:
        return (
            f"{_subject(evidence)} of a run is 0: the clock of its source is too coarse; record"
            " times with more digits."
        )
    return (
        "all requests of a run took exactly the same time, or it has only one"
        f" ({_subject(evidence, start=False)} is {_effect(evidence)}): its source records too"
        " coarsely, or something else than requests."
    )


def too_few_runs(evidence: Evidence) -> str:
    """How many runs there are and how many it takes."""
    needed = evidence.runs_needed or evidence.least
    seen = "" if evidence.relative is None else f"; so far, {_seen(evidence)}"
    return (
        f"{_runs(evidence, evidence.runs)} cannot prove any change{_among(evidence)}:"
        f" {needed} are needed, {needed - evidence.runs} more{seen}."
    )


def _among(evidence: Evidence) -> str:
    if evidence.families < 2:
        return ""
    return f" among {evidence.families} conditions and environments"


def thin_tail(evidence: Evidence) -> str:
    """That too few requests decide a quantile."""
    return (
        f"runs have too few independent requests for {evidence.metric}: fewer than"
        f" {LEAST_BEYOND} are beyond it; record more requests, or compare by a lower percentile."
    )


def changed(evidence: Evidence) -> str:
    """How much, how sure, and over what."""
    return (
        f"{_subject(evidence)} is {_effect(evidence)}{_range(evidence)}, over"
        f" {_runs(evidence, evidence.runs)}; the budget is {_budget(evidence)}{_cpu(evidence)}."
    )


def unchanged(evidence: Evidence) -> str:
    """That the difference is too small to matter, and how large it can be."""
    return (
        f"{_subject(evidence)} is {_effect(evidence)}{_range(evidence)}, within {_bound(evidence)},"
        f" over {_runs(evidence, evidence.runs)}{_shown_up_to(evidence)}{_cpu(evidence)}."
    )


def _shown_up_to(evidence: Evidence) -> str:
    """Up to which quantile that holds, and the first for which it is not shown."""
    shift = () if evidence.shape is None else evidence.shape.shift
    above = [quantile for quantile in shift if quantile.q >= MEDIAN]
    unshown = next((quantile for quantile in above if not quantile.inside), None)
    shown = [quantile.q for quantile in above if unshown is None or quantile.q < unshown.q]
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
    most = sorted(evidence.moved, key=lambda quantile: -abs(quantile.relative))[:SHOWN]
    moved = " and ".join(
        f"{_quantile(quantile.q)} by {percent(quantile.relative)}"
        f" ({percent(quantile.low)} to {percent(quantile.high)})"
        for quantile in sorted(most, key=lambda quantile: quantile.q)
    )
    stays = f"stays within {_bound(evidence)}" if evidence.equivalent else "shows no clear change"
    return f"{_subject(evidence)} {stays}, but the distribution moved: {moved}."


def undecided(evidence: Evidence) -> str:
    """What hides the difference, or how many runs would show it."""
    seen = f"{_subject(evidence)} is {_effect(evidence)}"
    if evidence.hidden == "warm-up":
        return (
            f"{seen}, but latency still drifts in the runs of '{evidence.condition}' or"
            f" '{evidence.baseline}', differently in both, which may be"
            f" {percent(expm1(evidence.systematic.most), signed=False)}: they are too short to show"
            " a steady state; warm up for longer, or record more requests."
        )
    if evidence.hidden == "rounding":
        return (
            f"{seen}, but times were rounded to steps of {percent(evidence.step, signed=False)} of"
            " it, and the file does not state in which direction: record times with more digits."
        )
    if evidence.mostly_systematic and evidence.systematic.cause is not None:
        return f"{seen}{_range(evidence)}, but {LIMITS[evidence.systematic.cause]}."
    known = evidence.mde is not None and evidence.mde < USELESS
    least = f"; these runs detect changes of {_mde(evidence)} or more" if known else ""
    return f"{seen}{_range(evidence)}, {_unsure(evidence)}{least}; {_more(evidence)}."


def _unsure(evidence: Evidence) -> str:
    """What decided that nothing is decided."""
    if evidence.excludes_zero and not evidence.significant:
        return "which can happen by chance in one of several comparisons"
    if abs(evidence.relative or 0) > evidence.threshold:
        return "but the runs vary too much to exclude that there is no change"
    return f"but the runs vary too much to exclude a change beyond {_bound(evidence)}"


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
        return (
            f"four of five experiments with {evidence.runs_needed} {kind} would {what}, but this"
            " experiment does not"
        )
    return f"about {evidence.runs_needed} {kind} ({more} more) would {what}"


def _subject(evidence: Evidence, start: bool = True) -> str:
    name = SUBJECTS.get(evidence.metric, evidence.metric)
    return name[0].upper() + name[1:] if start and name in SUBJECTS.values() else name


def _effect(evidence: Evidence) -> str:
    """The direction and both values."""
    relative = evidence.relative or 0.0
    if abs(relative) < THE_SAME:
        return f"the same to {change(THE_SAME, evidence.unit).removeprefix('+')}"
    word = "higher" if relative > 0 else "lower"
    size = change(abs(relative), evidence.unit).removeprefix("+")
    return f"{size} {word}: {_values(evidence)}"


def _values(evidence: Evidence) -> str:
    return " -> ".join(
        value(mean or 0.0, evidence.unit)
        for mean in (evidence.baseline_value, evidence.condition_value)
    )


def _range(evidence: Evidence) -> str:
    if evidence.low is None or evidence.high is None:
        return " (no interval)"
    low, high = (change(bound, evidence.unit) for bound in (evidence.low, evidence.high))
    return f" ({low} to {high})"


def _budget(evidence: Evidence) -> str:
    size = evidence.threshold if evidence.unit == "share" else evidence.budget
    return change(size, evidence.unit).removeprefix("+")


def _bound(evidence: Evidence) -> str:
    """The budget, or what is judged by in its place."""
    if evidence.unit == "share" or evidence.threshold <= evidence.budget:
        return f"the budget of {_budget(evidence)}"
    return f"the {percent(evidence.threshold, signed=False)} that can be detected here"


def _mde(evidence: Evidence) -> str:
    return percent(evidence.mde or 0, signed=False)


def _runs(evidence: Evidence, number: int) -> str:
    if evidence.paired:
        return count(number, "block")
    return f"{count(number, 'run')} per condition"


def _seen(evidence: Evidence) -> str:
    return f"{_subject(evidence, start=False)} is {_effect(evidence)}"


def _cpu(evidence: Evidence) -> str:
    cpu = evidence.cpu
    if cpu is None or not cpu.significant or cpu.relative is None:
        return ""
    return f"; {SUBJECTS[CPU]} {percent(cpu.relative)}"
