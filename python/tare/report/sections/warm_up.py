# SPDX-License-Identifier: Apache-2.0
"""The section of the warm-up: how each run went, where it was cut, what other cuts would say."""

from collections.abc import Iterator, Sequence
from functools import partial

from tare.report.figures import segments
from tare.report.figures.canvas import inline
from tare.report.figures.marks import SERIES
from tare.report.pictures import Picture, colours
from tare.report.result.result import Result
from tare.report.sections.sections import Figures, Section, Table
from tare.report.tables import where, whose
from tare.report.typesetting import count, duration, interval, percent, plural, safe
from tare.stats.steady import Steadiness, of_condition

PANELS = 8
KINDS = ("flat", "warm-up", "slowdown", "no steady state")
KIND_COLUMNS = ("condition", "runs", *KINDS, "too short", "together")
CUT_COLUMNS = ("condition", "left out", "verdict", "effect", "interval")


def section(result: Result) -> Section:
    """The levels of each run, how many of each kind, and the verdicts at other cuts."""
    return Section(
        anchor="warm-up",
        name="Warm-up",
        gist="where the warm-up of each run ends",
        how="A settled run is one level line. The shaded requests are left out of all runs alike."
        " If another end of the warm-up contradicts a verdict, the verdict is inconclusive.",
        figures=[
            Figures(
                list(_pictures(result)),
                "Levels of latency between changes, one line per run; a broken line is a run that"
                " reached no steady state. Changes that hit all runs of an interleaved block alike"
                " are removed first.",
            )
        ],
        tables=[
            Table("Runs by kind", KIND_COLUMNS, list(_kinds(result))),
            Table("Verdicts at other ends of the warm-up", CUT_COLUMNS, list(_cuts(result)), 3),
        ],
        absent="no run is long enough to see a warm-up in it, and no other cut was judged",
    )


def _courses(result: Result, environment: str, condition: str) -> list[Steadiness | None]:
    """How each valid run of whole requests went, by block; None where it is too short."""
    mine = sorted(
        (run.block, run.run)
        for run in result.experiment.runs
        if (run.environment, run.condition, run.span) == (environment, condition, result.span)
        and run.valid
    )
    return [result.looks.steadiness.get((run, result.span)) for _, run in mine]


def _conditions(result: Result) -> list[str]:
    control = result.experiment.control
    return [*result.conditions, *([control] if control else [])]


def _pictures(result: Result) -> Iterator[Picture]:
    colour = colours(result)
    for environment in result.environments:
        panels = []
        for name in _conditions(result):
            known = [run for run in _courses(result, environment, name) if run is not None]
            if known:
                panels.append(
                    segments.Course(result.called(name), colour.get(name, SERIES[0]), known)
                )
        if not panels:
            continue
        cut = result.looks.cuts.get((environment, result.span), 0)
        shown = panels[:PANELS]
        said = "; ".join(
            f"{safe(panel.title)} " + ", ".join(_in_words(run) for run in panel.runs)
            for panel in shown
        )
        more = len(panels) - len(shown)
        notes = [
            f"The first {plural(cut, 'request')} of every run are left out." if cut else "",
            f"Not drawn: {plural(more, 'more condition')}." if more else "",
        ]
        yield Picture(
            environment,
            inline(partial(segments.draw, courses=shown, cut=cut), f"Levels of each run: {said}."),
            note=" ".join(filter(None, notes)),
        )


def _kinds(result: Result) -> Iterator[Sequence[str]]:
    for environment in result.environments:
        for name in _conditions(result):
            runs = _courses(result, environment, name)
            known = [run for run in runs if run is not None]
            if known:
                yield (
                    where(result, environment, result.called(name)),
                    count(len(runs)),
                    *(count(sum(run.kind == kind for run in known)) for kind in KINDS),
                    count(len(runs) - len(known)),
                    of_condition(known) or "–",
                )


def _cuts(result: Result) -> Iterator[Sequence[str]]:
    for comparison in result.primary_comparisons:
        if not comparison.warm_up_cuts:
            continue
        named = whose(result, comparison)
        cut = result.looks.cuts.get((comparison.environment, comparison.span), 0)
        yield (
            named,
            f"as judged: {plural(cut, 'request')}",
            comparison.verdict,
            percent(comparison.effect.relative),
            interval(comparison.interval.low, comparison.interval.high),
        )
        for other in comparison.warm_up_cuts:
            yield (
                named,
                safe(other.name, 40),
                other.verdict,
                percent(other.relative),
                interval(other.low, other.high),
            )


def _in_words(run: Steadiness) -> str:
    return f"{run.kind} at {' and '.join(duration(segment.level) for segment in run.segments[:4])}"
