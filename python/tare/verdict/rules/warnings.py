# SPDX-License-Identifier: Apache-2.0
"""What the verdict cannot say but a reader must know: each check gives lines of warning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, permutations
from statistics import median

from tare.samples.model import REQUEST, Experiment, Run
from tare.samples.notes import Note, grouped
from tare.verdict.evidence.evidence import Evidence
from tare.verdict.evidence.warm_up_difference import warm_up_difference
from tare.verdict.number_text import count, duration, listed, percent
from tare.verdict.rules.units import units

LAG = 0.1
FEW_ORPHANS = 0.002
"""The share of a run's spans that the begin and the end of a recording may cut off."""
SOME = 20
"""Requests of which no two runs have the same by chance, where times are exact."""
TURNS = 6
"""Turns that by chance have one order in 3 of 100 experiments."""


def warnings(experiment: Experiment, evidence: Sequence[Evidence]) -> list[str]:
    """All warnings about an experiment and the evidence taken from it."""
    found = [*missing(experiment)]
    for environment, runs in _by_environment(experiment.runs):
        where = f"{environment}: " if environment else ""
        for check in CHECKS:
            for line in check(runs, experiment):
                note = where + line
                found.append(Note(note) if isinstance(line, Note) else note)
    found.extend(disagreement(evidence))
    return found


def missing(experiment: Experiment) -> Iterator[str]:
    """Places that have nothing to compare: no runs of the baseline, or of another condition."""
    conditions = list(dict.fromkeys(run.condition for run in experiment.runs))
    baseline = experiment.baseline
    for environment, runs in _by_environment(experiment.runs):
        where = f"{environment}: " if environment else ""
        for span in dict.fromkeys(run.span for run in runs):
            here = {run.condition for run in runs if run.span == span}
            what = "runs" if span == REQUEST else f"'{span}'"
            absent = [name for name in conditions if name not in here]
            if baseline in absent:
                others = ", ".join(f"'{name}'" for name in conditions if name in here)
                yield f"{where}no {what} of the baseline '{baseline}': no verdict for {others}"
            elif absent:
                listed = ", ".join(f"'{name}'" for name in absent)
                yield f"{where}no {what} of {listed}: no verdict"


def unguarded(experiment: Experiment) -> Iterator[str]:
    """A control of which runs are missing: what it would have said is not known."""
    control = experiment.control
    if control is None:
        return
    for environment, runs in _by_environment(experiment.runs):
        blocks, there = (
            {run.block for run in runs if run.condition == name and run.valid}
            for name in (experiment.baseline, control)
        )
        if not blocks <= there:
            where = f"{environment}: " if environment else ""
            left = f"{len(blocks & there)} of {len(blocks)} blocks"
            yield (
                f"{where}the control has valid runs in {left}: a disturbance of other blocks"
                f" cannot be detected"
            )


def not_counted(runs: Sequence[Run], experiment: Experiment) -> Iterator[str]:
    """Invalid runs with their reasons, and blocks that lack a run, which no comparison shows."""
    found = {(run.run, run.reason): run for run in runs if not run.valid}
    lines = [
        (run.condition, where, f"{cause}: the run does not count")
        for run in found.values()
        for where, cause in [run.failure]
    ]
    yield from grouped(lines, "run")
    if not experiment.paired:
        return
    blocks = dict.fromkeys(run.block for run in runs)
    for name in dict.fromkeys(run.condition for run in runs):
        there = {run.block for run in runs if run.condition == name}
        lacking = [str(block) for block in blocks if block not in there]
        if lacking:
            yield f"no run of '{name}' in block {', '.join(lacking)}: not compared there"


def order(runs: Sequence[Run], experiment: Experiment) -> Iterator[str]:
    """Every run of one condition before every run of another: time and condition are one.

    A smoke run has too few blocks for another order, and no verdict that it could weaken.
    """
    if experiment.smoke:
        return
    baseline = experiment.baseline
    names = sorted({run.condition for run in runs}, key=lambda name: name != baseline)
    for early, late in permutations(names, 2):
        if baseline not in (early, late):
            continue
        ends = [run.ended_ns for run in runs if run.valid and run.condition == early]
        starts = [run.started_ns for run in runs if run.valid and run.condition == late]
        last = [end for end in ends if end is not None]
        first = [start for start in starts if start is not None]
        if not ends or not starts or len(last) < len(ends) or len(first) < len(starts):
            continue
        if _always_first(runs, early, late):
            yield (
                f"order is confounded: '{early}' always ran right before '{late}', so the"
                " effect of the first run"
                " on the second cannot be separated; use a random order"
            )
        if max(last) <= min(first):
            gap = duration(min(first) - max(last))
            yield (
                f"order is confounded: every run of '{early}' came before every run of '{late}'"
                f" ({gap} between), so a change over time cannot be"
                " separated; run the conditions in blocks of random order"
            )


def _always_first(runs: Sequence[Run], early: str, late: str) -> bool:
    """Whether runs of two conditions took turns in one and the same order, often enough for that
    to be no chance."""
    known = sorted(
        (run.started_ns, run.condition)
        for run in runs
        if run.valid and run.started_ns is not None and run.condition in (early, late)
    )
    turns = [condition for _, condition in known]
    at_once = len({start for start, _ in known}) < len(known)
    return len(turns) >= 2 * TURNS and not at_once and turns == [early, late] * (len(turns) // 2)


def errors(runs: Sequence[Run], experiment: Experiment) -> Iterator[str]:
    """Failed requests are in no latency: a condition that fails fast would look fast."""
    totals: dict[str, tuple[int, int]] = {}
    for run in runs:
        failed, sent = totals.get(run.condition, (0, 0))
        totals[run.condition] = (failed + run.errors, sent + run.requests)
    if not any(failed for failed, _ in totals.values()):
        return
    listed = ", ".join(
        f"'{name}' {failed:,} of {sent:,} ({percent(failed / sent if sent else 0, signed=False)})"
        for name, (failed, sent) in sorted(
            totals.items(), key=lambda total: total[0] != experiment.baseline
        )
    )
    yield Note(f"failed requests, which have no latency: {listed}")


def copies(runs: Sequence[Run], experiment: Experiment) -> Iterator[str]:  # noqa: ARG001
    """Runs that say the same to the last digit: one recording, given twice."""
    alike: dict[tuple[float, ...], list[str]] = {}
    for run in runs:
        if run.valid and run.step_ns == 0 and run.answered >= SOME and run.quantiles:
            numbers = (*run.quantiles.values(), run.summaries.get("mean", 0.0), run.requests)
            known = run.endpoint if run.endpoint and "://" not in run.endpoint else f"run {run.run}"
            alike.setdefault(numbers, []).append(known)
    # A file with several spans is named once.
    for names in dict.fromkeys(map(tuple, alike.values())):
        if len(names) > 1:
            yield (
                f"{listed(names, 2, ' and ')} have exactly the same requests, so one run was"
                f" given twice: give different runs"
            )


def warm_ups(runs: Sequence[Run], experiment: Experiment) -> Iterator[str]:
    """A part that no verdict is about, and that differs."""
    for span in dict.fromkeys(run.span for run in runs):
        mine = [run for run in runs if run.span == span]
        for name in dict.fromkeys(run.condition for run in mine):
            if name == experiment.baseline:
                continue
            found = warm_up_difference(experiment, mine, name)
            if found is not None:
                of = "" if span == REQUEST else f" of '{span}'"
                share = percent(found.share, signed=False)
                yield (
                    f"'{name}': the warm-up{of} that is left out, {share} of each run, differs by"
                    f" {percent(found.relative)}; no verdict covers it; look at the beginning"
                    " of the runs"
                )


def zeros(runs: Sequence[Run], experiment: Experiment) -> Iterator[str]:
    """Requests that took no time: no request does."""
    for name in dict.fromkeys([experiment.baseline, *(run.condition for run in runs)]):
        mine = [run for run in runs if run.condition == name]
        found, answered = sum(run.zeros for run in mine), sum(run.answered for run in mine)
        if found:
            share = percent(found / answered, signed=False)
            yield (
                f"'{name}': {found:,} of {answered:,} requests ({share}) took 0 ns: the clock of"
                " their source is too coarse"
            )


def left_out(runs: Sequence[Run], experiment: Experiment) -> Iterator[str]:
    """How much of the load does not count; by condition where each was disturbed by itself."""
    valid = [run for run in runs if run.valid]
    if not any(run.left_out > 0 for run in valid):
        return
    why = "because another program used the CPU"
    if experiment.paired:
        yield Note(f"{_share(valid)} left out, in all conditions alike, {why}{_most(valid)}")
        return
    for name in dict.fromkeys(run.condition for run in valid):
        mine = [run for run in valid if run.condition == name]
        yield Note(f"'{name}': {_share(mine)} left out, {why}{_most(mine)}")


def lag(runs: Sequence[Run], experiment: Experiment) -> Iterator[str]:
    """Requests that wait to be sent: their response time is not the service's alone."""
    found = []
    for name in dict.fromkeys([experiment.baseline, *(run.condition for run in runs)]):
        lags = [run.load_stats.lag for run in runs if run.condition == name and run.valid]
        if lags:
            found.append((name, median(lags)))
    if any(share > LAG for _, share in found):
        listed = ", ".join(f"'{name}' {percent(share, signed=False)}" for name, share in found)
        yield (
            f"requests were sent late by a large share of the response time: {listed}; all users"
            f" of the load were busy, or the generator was late. Lower the rate, or add users"
        )


def orphans(runs: Sequence[Run], experiment: Experiment) -> Iterator[str]:  # noqa: ARG001
    """Spans without the span around them, in runs that count."""
    shares = {
        run.run: run.load_stats.orphans for run in runs if run.valid and run.load_stats.orphans > 0
    }
    if not shares:
        return
    if (most := max(shares.values())) <= FEW_ORPHANS:
        yield Note(f"{count(len(shares), 'run')} with spans that lack their parent span")
        return
    yield (
        f"incomplete traces: in {count(len(shares), 'run')}, up to {most:.2%} of the spans lack"
        " their parent span; the exporters drop spans (enlarge their queues), or the recording cut"
        " traces"
    )


def _share(runs: Sequence[Run]) -> str:
    share = sum(run.left_out for run in runs) / len(runs)
    return f"{percent(share, signed=False)} of the load was"


def _most(runs: Sequence[Run]) -> str:
    most = max(run.left_out for run in runs)
    return f" (most in one run: {percent(most, signed=False)})"


def disagreement(evidence: Sequence[Evidence]) -> Iterator[str]:
    """Mean and median on different sides of zero: the direction depends on what is asked."""
    places: dict[tuple[str, str, str], dict[str, float | None]] = {}
    for comparison in evidence:
        place = comparison.environment, comparison.condition, comparison.span
        places.setdefault(place, {})[comparison.metric] = comparison.relative
    for (environment, condition, span), effects in places.items():
        median, mean = effects.get("p50"), effects.get("mean")
        if median is not None and mean is not None and median * mean < 0:
            where = f"{environment}: " if environment else ""
            yield Note(
                f"{where}'{condition}' ({span}) has no single direction: its median differs by"
                f" {percent(median)}, its mean by {percent(mean)}"
            )


CHECKS = (not_counted, order, copies, warm_ups, errors, zeros, left_out, units, lag, orphans)


def _by_environment(runs: Sequence[Run]) -> Iterator[tuple[str, list[Run]]]:
    def key(run: Run) -> str:
        return run.environment

    for environment, group in groupby(sorted(runs, key=key), key=key):
        yield environment, list(group)
