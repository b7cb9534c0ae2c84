# SPDX-License-Identifier: Apache-2.0
"""Chooses what each figure shows of a result, has it drawn, and says its numbers in words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from markupsafe import Markup

from tare.report.figures import (
    boxes,
    effects,
    lag_plot,
    over_time,
    own_time,
    pair,
    percentiles,
    runs,
)
from tare.report.figures.canvas import Layout, inline
from tare.report.figures.marks import SERIES
from tare.report.result import distributions
from tare.report.result.distributions import ConditionKey, Curve
from tare.report.result.result import Result
from tare.report.typesetting import count, duration, metric, percent, plural, safe
from tare.terminal import both_ends

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tare.samples.sql.table import Table

LAG_PANELS = 8
FUNCTIONS = 6
SELDOM = 0.01
"""Functions with a smaller share of a layer's calls are not drawn."""

Legend = Sequence[tuple[str, str]]
"""Names and their colours."""
T = TypeVar("T")


@dataclass(frozen=True)
class Picture:
    """One figure: whose it is, its two drawings, its legend, and what was left out of it."""

    of: str
    drawings: Markup
    legend: Legend = ()
    note: str = ""


def colours(result: Result) -> dict[str, str]:
    """The colour of each condition, the same in every figure; the baseline is grey."""
    rest = SERIES[1:]
    return {
        name: rest[(number - 1) % len(rest)] if name != result.baseline else SERIES[0]
        for number, name in enumerate(result.conditions)
    }


CARDS = 6
"""With more cards than these, the first screen has no pictures."""


def pairs(
    result: Result, densities: Mapping[ConditionKey, distributions.Density]
) -> dict[ConditionKey, Markup]:
    """For each card of whole requests: its condition's requests and the baseline's."""
    colour = colours(result)
    runs_of: dict[ConditionKey, list[float]] = {}
    for run in result.measured:
        if run.valid and result.primary in run.summaries:
            place = (run.environment, run.condition)
            runs_of.setdefault(place, []).append(run.summaries[result.primary])
    compared = [
        comparison for comparison in result.primary_comparisons if comparison.span == result.span
    ]
    if not len(compared) <= CARDS:
        return {}
    wide = {1: 620, 2: 500, 4: 500}.get(len(compared), 330)
    layouts = (Layout("wide", wide, 12), Layout("narrow", 310, 12))
    found = {}
    for comparison in compared:
        sides = [
            pair.Side(
                name,
                colour.get(name, SERIES[0]),
                densities[place],
                result.primary,
                value,
                runs_of.get(place, ()),
            )
            for name, value in (
                (result.baseline, comparison.values.baseline if comparison.values else None),
                (comparison.condition, comparison.values.condition if comparison.values else None),
            )
            if (place := (comparison.environment, name)) in densities
        ]
        if len(sides) < 2:
            continue
        height = 170 if len(compared) == 1 else 130 if len(compared) < 4 else 100
        text = "; ".join(
            f"{safe(side.name)} {side.metric} {duration(side.value)},"
            f" {plural(len(side.runs), 'run')}"
            for side in sides
        )
        found[comparison.environment, comparison.condition] = inline(
            partial(pair.draw, sides=sides, height=height),
            f"Distributions of latency: {text}.",
            layouts,
        )
    return found


def time_plots(result: Result, samples: "Table") -> Iterator[Picture]:
    """Throughput, latency and failed requests of every run but the control's."""
    named = {
        run.run: (run.environment, run.condition)
        for run in result.runs
        if run.condition != result.experiment.control
    }
    valid = {run.run: run.valid for run in result.runs}
    for environment in result.environments:
        mine = [run for run, place in named.items() if place[0] == environment]
        course = distributions.over_time(samples, mine, result.span)
        if course is None:
            continue
        lines: dict[str, list[over_time.Run]] = {}
        failures: dict[str, int] = {}
        for run, moments in course.moments.items():
            name = named[run][1]
            lines.setdefault(name, []).append(over_time.Run(moments, valid[run]))
            failures[name] = failures.get(name, 0) + sum(moment.failed for moment in moments)
        drawn = [
            over_time.Condition(name, colour, lines[name])
            for name, colour in colours(result).items()
            if name in lines
        ]
        text = "; ".join(
            f"{safe(condition.name)} {plural(len(condition.runs), 'run')},"
            f" {plural(failures[condition.name], 'failed request')}"
            for condition in drawn
        )
        draw = partial(over_time.draw, conditions=drawn, width_ns=course.width_ns)
        yield Picture(
            environment,
            inline(draw, f"Throughput, latency and errors over time: {text}."),
            [(both_ends(condition.name, 40), condition.colour) for condition in drawn],
            "" if any(failures.values()) else "No request failed.",
        )


def forest(result: Result) -> Iterator[Picture]:
    """Effect and interval of every metric."""
    colour = colours(result)
    for environment in result.environments:
        rows = [
            effects.Effect(
                condition=comparison.condition,
                span=comparison.span if len(result.spans) > 1 else "",
                metric=metric(comparison.metric),
                colour=colour.get(comparison.condition, SERIES[1]),
                primary=comparison.metric == result.primary,
                value=comparison.effect.relative,
                low=comparison.interval.low,
                high=comparison.interval.high,
                threshold=result.threshold(comparison),
            )
            for comparison in sorted(result.ranked, key=result.rank)
            if comparison.environment == environment and comparison.effect.relative is not None
            if comparison.unit == "ns"
        ]
        if not rows:
            continue
        said = "; ".join(
            f"{safe(row.name)} {percent(row.value)}"
            + (f", {percent(row.low)} to {percent(row.high)}" if row.low is not None else "")
            for row in rows
        )
        label = (
            f"Differences from {safe(result.baseline)}: {said}. "
            f"Budget {percent(result.budget, signed=False)} either way."
        )
        draw = partial(effects.draw, effects=rows)
        yield Picture(environment, inline(draw, label))


def percentile_plots(
    result: Result, curves: Mapping[int, Curve], span: str = ""
) -> Iterator[Picture]:
    """Percentile curves of every run, of whole requests or a span."""
    places = result.places
    for environment in result.environments:
        lines = {}
        for name, colour in colours(result).items():
            mine = [curves[run] for run in curves if places[run] == (environment, name)]
            if mine:
                lines[name] = percentiles.Line(name, colour, mine)
        if not lines:
            continue
        thinned = any(len(line.drawn()) < len(line.runs) for line in lines.values())
        note = f"{percentiles.THIN_LINES} runs of a condition, evenly spread over the experiment"
        said = "; ".join(
            f"{safe(name)} {_in_words(distributions.middle(line.runs))}"
            for name, line in lines.items()
        )
        draw = partial(percentiles.draw, lines=list(lines.values()))
        of = f" of {safe(span)}" if span else ""
        yield Picture(
            result.named(environment, span) if span else environment,
            inline(draw, f"Latency{of} by percentile, median over runs: {said}."),
            [(both_ends(name, 40), line.colour) for name, line in lines.items()],
            f"Thin lines: {note}; the bold line is the median over all runs." if thinned else "",
        )


def box_plots(result: Result, samples: "Table") -> Iterator[Picture]:
    """Tukey's boxes over the kept requests of every condition."""
    found = distributions.boxes(samples, result.places)
    for environment, mine in _by_environment(result, found):
        said = "; ".join(
            f"{safe(name)} median {duration(box.median)}, quartiles {duration(box.first)} and "
            f"{duration(box.third)}, whiskers {duration(box.low)} and {duration(box.high)}"
            for name, _, box in mine
        )
        hidden = ", ".join(
            f"{percent(box.beyond / box.requests, signed=False)} of {both_ends(name, 40)}"
            for name, _, box in mine
        )
        yield Picture(
            environment,
            inline(partial(boxes.draw, rows=mine), f"Box plots of latency: {said}."),
            note=f"Beyond the whiskers, not drawn: {hidden}.",
        )


def lag_plots(result: Result, samples: "Table") -> Iterator[Picture]:
    """The first requests of the first valid run of each condition, with those of the warm-up."""
    first: dict[ConditionKey, int] = {}
    for run, place in sorted(result.places.items()):
        first.setdefault(place, run)
    for environment, mine in _by_environment(result, first):
        panels = []
        for name, colour, run in mine[:LAG_PANELS]:
            values = distributions.first_requests(samples, run)
            if len(values):
                panels.append((name, colour, values))
        if not panels:
            continue
        said = "; ".join(
            f"{safe(name)} {count(len(values))} requests from {duration(float(values.min()))} to "
            f"{duration(float(values.max()))}"
            for name, _, values in panels
        )
        more = len(mine) - LAG_PANELS
        yield Picture(
            environment,
            inline(partial(lag_plot.draw, panels=panels), f"Round trips in order: {said}."),
            note=f"{more} more conditions are not drawn." if more > 0 else "",
        )


def run_plots(result: Result) -> Iterator[Picture]:
    """The primary metric of every valid run."""
    values: dict[ConditionKey, list[tuple[int, float]]] = {}
    for run in result.measured:
        if run.valid and result.primary in run.summaries:
            place = (run.environment, run.condition)
            values.setdefault(place, []).append((run.block, run.summaries[result.primary]))
    for environment, mine in _by_environment(result, values):
        said = "; ".join(
            f"{safe(name)} {', '.join(duration(value) for _, value in found)}"
            for name, _, found in mine
        )
        yield Picture(
            environment,
            inline(partial(runs.draw, series=mine), f"{result.primary} of every run: {said}."),
            [(both_ends(name, 40), colour) for name, colour, _ in mine],
        )


def own_time_plots(result: Result, costs: "Table") -> Iterator[Picture]:
    """The layers' own time by function, one picture a layer and condition."""
    found: dict[str, dict[str, NDArray[np.float64]]] = {}
    for key, bins in distributions.own_times(costs).items():
        of = f"{key.layer} of {key.condition}"
        of += f", {key.environment}" if len(result.environments) > 1 else ""
        found.setdefault(of, {})[key.function] = bins
    for of, functions in found.items():
        calls = {name: float(bins[:, 2].sum()) for name, bins in functions.items()}
        often = [name for name in calls if calls[name] >= SELDOM * sum(calls.values())]
        most = sorted(often, key=lambda name: -calls[name])[:FUNCTIONS]
        rows = [
            (name, SERIES[1 + number % (len(SERIES) - 1)], functions[name])
            for number, name in enumerate(most)
        ]
        said = "; ".join(
            f"{safe(name)} {count(calls[name])} calls, median "
            f"{duration(distributions.binned_quantile(functions[name], 0.5))}"
            for name in most
        )
        more = len(functions) - len(most)
        yield Picture(
            of,
            inline(partial(own_time.draw, rows=rows), f"Own time of one call: {said}."),
            [(safe(name, 24), colour) for name, colour, _ in rows],
            f"{plural(more, 'function')} with fewer calls in the table only." if more else "",
        )


def _by_environment(
    result: Result, found: Mapping[ConditionKey, T]
) -> Iterator[tuple[str, list[tuple[str, str, T]]]]:
    """What was found for each condition, with its colour, where there is any."""
    for environment in result.environments:
        mine = [
            (name, colour, found[environment, name])
            for name, colour in colours(result).items()
            if (environment, name) in found
        ]
        if mine:
            yield environment, mine


def _in_words(curve: Curve) -> str:
    return ", ".join(f"{name} {duration(value)}" for name, _, value in percentiles.values(curve))
